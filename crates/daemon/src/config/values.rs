//! Shares and times, as they are written in a file.

use onbeat_model::{Bandwidth, Span};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// The most that is written as a share, of one CPU. A hundred CPUs.
const MOST_PERCENT: f64 = 10_000.0;

/// A share of all CPUs or of one, as in `"85%"`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(pub Bandwidth);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = text
            .strip_suffix('%')
            .and_then(|text| text.trim().parse::<f64>().ok());
        number
            .filter(|&number| number > 0.0 && number <= MOST_PERCENT)
            .map(|number| Self(Bandwidth::from_cpus(number / 100.0)))
            .ok_or_else(|| {
                D::Error::custom(format!(
                    "'{text}' is no share: write per cent above 0, as in \"85%\""
                ))
            })
    }
}

/// A length of time with its unit, as in `"40ms"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time(pub Span);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time = text.parse::<Span>().ok().filter(|time| !time.is_zero());
        time.map(Self).ok_or_else(|| {
            D::Error::custom(format!(
                "'{text}' is no length of time: write one with its unit, as in \"40ms\""
            ))
        })
    }
}
