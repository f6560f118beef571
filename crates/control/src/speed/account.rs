//! The account of the CPUs' speed: every change with its reason, and for how long which speed was
//! set.

use std::collections::BTreeMap;
use std::fmt;

use onbeat_model::{Bandwidth, Instant, Refusal, Span, Speed};
use serde::Serialize;

use crate::report::in_words;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SpeedWhat {
    /// A lower speed is to be set: budgets are raised first.
    #[serde(rename = "speed-announced")]
    Announced,
    #[serde(rename = "speed-set")]
    Set,
    /// The lower speed that was announced is not set after all.
    #[serde(rename = "speed-given-up")]
    GivenUp,
    /// Another speed is wanted and cannot be.
    #[serde(rename = "speed-refused")]
    Refused,
    /// The speed is again in the hands that had it before.
    #[serde(rename = "speed-released")]
    Released,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SpeedWhy {
    Began,
    /// The busiest CPU is in use for so much of the time.
    Busy {
        utilisation: Bandwidth,
    },
    /// Even the busiest CPU is in use for so little of the time.
    Idle {
        utilisation: Bandwidth,
    },
    /// The lasting budgets come to so much, at the speed at which they must suffice.
    Budgets(Bandwidth),
    /// All budgets have been raised, and the longest reservation period is over.
    BudgetsInForce,
    /// The budgets would come to so much.
    NoRoom(Bandwidth),
    BudgetRefused,
    Refused(Refusal),
    Finished,
}

impl fmt::Display for SpeedWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Began => f.write_str("the highest, until it is known how busy the CPUs are"),
            Self::Busy { utilisation } => {
                write!(f, "the busiest CPU is in use for {utilisation} of the time")
            }
            Self::Idle { utilisation } => write!(
                f,
                "even the busiest CPU is in use for only {utilisation} of the time"
            ),
            Self::Budgets(promised) => {
                write!(f, "the budgets come to {promised} of a CPU")
            }
            Self::BudgetsInForce => {
                f.write_str("all budgets are raised, and the longest period is over")
            }
            Self::NoRoom(projected) => {
                write!(
                    f,
                    "the reservations would come to {projected} of a CPU there"
                )
            }
            Self::BudgetRefused => f.write_str("not all budgets could be raised for it"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Finished => f.write_str("onbeat ends"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpeedEntry {
    #[serde(rename = "at_ns")]
    pub at: Instant,
    pub what: SpeedWhat,
    #[serde(serialize_with = "in_words")]
    pub why: SpeedWhy,
    #[serde(rename = "old_khz")]
    pub old: Option<Speed>,
    /// The speed from now on; of one that was announced, given up or refused, that one.
    #[serde(rename = "new_khz")]
    pub new: Option<Speed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AtSpeed {
    #[serde(rename = "speed_khz")]
    pub speed: Speed,
    #[serde(rename = "time_ns")]
    pub time: Span,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SpeedAccount {
    present: Option<(Speed, Instant)>,
    past: BTreeMap<Speed, Span>,
}

impl SpeedAccount {
    pub(crate) fn switched(&mut self, speed: Speed, at: Instant) {
        if let Some((before, since)) = self.present.replace((speed, at)) {
            *self.past.entry(before).or_default() += at.since(since);
        }
    }

    pub(crate) fn at_speeds(&self, now: Instant) -> Vec<AtSpeed> {
        let mut times = self.past.clone();
        if let Some((speed, since)) = self.present {
            *times.entry(speed).or_default() += now.since(since);
        }
        let at = |(speed, time)| AtSpeed { speed, time };
        times.into_iter().map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mhz(mhz: u64) -> Speed {
        Speed::from_khz(mhz * 1000).unwrap()
    }

    #[test]
    fn an_entry_is_one_flat_line_with_units_in_its_names_and_its_reason_in_words() {
        let entry = SpeedEntry {
            at: Instant::from_ns(5),
            what: SpeedWhat::Announced,
            why: SpeedWhy::Idle {
                utilisation: Bandwidth::from_cpus(0.16),
            },
            old: Some(mhz(2400)),
            new: Some(mhz(1500)),
        };
        assert_eq!(
            serde_json::to_string(&entry).unwrap(),
            concat!(
                r#"{"at_ns":5,"what":"speed-announced","why":"even the busiest CPU is in use for "#,
                r#"only 16.0% of the time","old_khz":2400000,"new_khz":1500000}"#
            )
        );
    }
}
