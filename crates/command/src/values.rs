//! The values that flags take, and the errors about wrong ones.

use onbeat_model::{Bandwidth, Span};

/// A share above 0% and up to 100%; below 1, with its sign.
pub fn percent(text: &str) -> Result<Bandwidth, String> {
    let advice =
        || format!("'{text}' is not a share: write per cent above 0 and up to 100, as in 85%");
    let bare = text.trim_end_matches('%').trim_end();
    let number: f64 = bare.parse().map_err(|_| advice())?;
    if number > 0.0 && number < 1.0 && bare == text {
        let whole = number * 100.0;
        return Err(format!(
            "'{text}' could be {whole}% or {text}%: write the one that you mean"
        ));
    }
    if number > 0.0 && number <= 100.0 {
        Ok(Bandwidth::from_cpus(number / 100.0))
    } else {
        Err(advice())
    }
}

pub fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err(format!(
            "'{text}' is not a share: write a number from 0 to 1, as in 0.3"
        )),
    }
}

pub fn positive_span(text: &str) -> Result<Span, String> {
    let span: Span = text
        .parse()
        .map_err(|error: onbeat_model::ParseSpanError| error.to_string())?;
    if span.is_zero() {
        return Err(format!(
            "'{text}' is no time at all: write one above zero, as in 1s"
        ));
    }
    Ok(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_above_zero_and_at_most_all() {
        assert_eq!(percent("85%"), Ok(Bandwidth::from_cpus(0.85)));
        assert_eq!(percent("12.5"), Ok(Bandwidth::from_cpus(0.125)));
        assert_eq!(percent("0.6%"), Ok(Bandwidth::from_cpus(0.006)));
        for wrong in ["", "%", "0", "0.6", "-5%", "101%", "NaN", "inf"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn windows_are_never_zero_and_shares_are_at_most_1() {
        assert_eq!(positive_span("500ms"), Ok(Span::from_ms(500)));
        assert!(positive_span("0s").is_err());
        assert_eq!(share("0"), Ok(0.0));
        for wrong in ["1.1", "-0.1", "NaN", "30%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
