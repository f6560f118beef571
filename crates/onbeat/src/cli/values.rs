//! The values that flags take, and the errors about wrong ones.

use std::str::FromStr;

use clap::ValueEnum;
use onbeat_control::Analyse;
use onbeat_decide::power::Band;
use onbeat_model::{Bandwidth, Span};
use serde::Deserialize;

/// The period analyser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AnalysisMethod {
    /// onbeat's own analyser: one thread's bursts, with a confidence
    #[default]
    Default,
    /// The spectrum and peak heuristic of the LFS++ paper, as written (section 5.2)
    Lfspp,
}

/// The part of the kernel that enforces reservations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Through {
    /// SCHED_DEADLINE: a reservation for each thread, ahead of everything else
    #[default]
    Deadline,
    /// onbeat's scheduler `reserve` (sched_ext), for all ordinary tasks as long as onbeat runs
    Scx,
}

/// What threads are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MeansChoice {
    /// A real-time priority within its account for all; with --always or --hard, reservations for
    /// those with a period
    #[default]
    Auto,
    /// Reservations for those with a period, and nothing for the rest
    Reservations,
    /// A real-time priority within its account for all
    Priority,
    /// A nice value and a slice for all
    Nice,
}

/// Whether threads of other programs on the pipeline are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pipelines {
    /// Reserve for the threads that work for each job of a periodic one
    #[default]
    Auto,
    /// Leave other programs alone
    Off,
}

impl AnalysisMethod {
    /// The analyser in place of the loop's own.
    pub(crate) fn analyse(self) -> Option<Analyse> {
        match self {
            Self::Default => None,
            Self::Lfspp => Some(onbeat_lfspp::analyse),
        }
    }
}

/// `--seed`: the first and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
    /// The first.
    pub(crate) first: u64,
    /// The last, not below the first.
    pub(crate) last: u64,
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Self { first, last }),
            _ => Err(format!(
                "'{text}' is not a seed: write a whole number, or the first and the last, as in 1-100"
            )),
        }
    }
}

/// The number of a process.
pub(super) fn process(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not the number of a process: write $(pidof {text})"))
}

/// A share above 0% and up to 100%; below 1, with its sign.
pub(super) fn percent(text: &str) -> Result<Bandwidth, String> {
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

/// A share from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err(format!(
            "'{text}' is not a share: write a number from 0 to 1, as in 0.3"
        )),
    }
}

/// Two shares with a dash between them, the lower one first; that one may be 0.
pub(crate) fn band(text: &str) -> Result<Band, String> {
    let advice =
        || format!("'{text}' is not a band: write two shares, the lower one first, as in 20%-80%");
    let share = |text: &str| match text.trim().trim_end_matches('%').parse::<f64>() {
        Ok(number) if (0.0..=100.0).contains(&number) => Some(Bandwidth::from_cpus(number / 100.0)),
        _ => None,
    };
    let (low, high) = text.split_once('-').ok_or_else(advice)?;
    let (low, high) = share(low).zip(share(high)).ok_or_else(advice)?;
    Band::new(low, high).ok_or_else(advice)
}

/// A length of time that is not zero.
pub(super) fn positive_span(text: &str) -> Result<Span, String> {
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
    fn seeds_are_one_or_from_the_first_to_the_last() {
        let seeds = |text: &str| text.parse().map(|Seeds { first, last }| (first, last));
        assert_eq!(seeds("7"), Ok((7, 7)));
        assert_eq!(seeds("1-100"), Ok((1, 100)));
        for wrong in ["", "-1", "3-", "9-2", "a", "1-2-3"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }

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
    fn a_band_is_two_shares_in_order() {
        let expected = Band::new(Bandwidth::from_cpus(0.3), Bandwidth::from_cpus(0.75));
        assert_eq!(band("30%-75%").ok(), expected);
        assert_eq!(band("30 - 75").ok(), expected);
        for wrong in [
            "", "20%", "80%-20%", "20%-20%", "20%-101%", "-5%-80%", "x-y",
        ] {
            let advice = band(wrong).unwrap_err();
            assert!(advice.contains("as in 20%-80%"), "{wrong}: {advice}");
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
