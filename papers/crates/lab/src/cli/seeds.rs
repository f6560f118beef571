//! Which seeds to simulate.

use std::str::FromStr;

/// `--seed`: the first and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
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
}
