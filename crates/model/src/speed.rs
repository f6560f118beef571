//! How fast CPUs run: a frequency, and the frequencies that there are.
//!
//! An execution time means something at one speed only: at another one the same cycles take another
//! time. Everything that speaks of time (jobs, budgets, reservations) speaks of time at the speed
//! that the CPUs have at the moment.

use std::fmt;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

/// The frequency of a CPU, in kHz, as the kernel's cpufreq counts it. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Speed(NonZeroU64);

impl Speed {
    #[must_use]
    pub fn from_khz(khz: u64) -> Option<Self> {
        NonZeroU64::new(khz).map(Self)
    }

    #[must_use]
    pub const fn as_khz(self) -> u64 {
        self.0.get()
    }

    /// How many times as fast as `other`: what takes t at `self` takes t times this at `other`.
    #[must_use]
    pub fn ratio(self, other: Self) -> f64 {
        self.as_khz() as f64 / other.as_khz() as f64
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} MHz", self.as_khz() as f64 / 1000.0))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    lowest: Speed,
    higher: Vec<Speed>,
}

impl Ladder {
    #[must_use]
    pub fn new(speeds: impl IntoIterator<Item = Speed>) -> Option<Self> {
        let mut higher: Vec<Speed> = speeds.into_iter().collect();
        higher.sort_unstable();
        higher.dedup();
        let lowest = (!higher.is_empty()).then(|| higher.remove(0))?;
        Some(Self { lowest, higher })
    }

    #[must_use]
    pub const fn lowest(&self) -> Speed {
        self.lowest
    }

    #[must_use]
    pub fn highest(&self) -> Speed {
        self.higher.last().copied().unwrap_or(self.lowest)
    }

    pub fn speeds(&self) -> impl DoubleEndedIterator<Item = Speed> + '_ {
        std::iter::once(self.lowest).chain(self.higher.iter().copied())
    }

    #[must_use]
    pub fn below(&self, speed: Speed) -> Option<Speed> {
        self.speeds().rev().find(|&other| other < speed)
    }

    #[must_use]
    pub fn at_least(&self, speed: Speed) -> Speed {
        self.speeds()
            .find(|&other| other >= speed)
            .unwrap_or_else(|| self.highest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(mhz: &[u64]) -> Option<Ladder> {
        Ladder::new(mhz.iter().filter_map(|&mhz| Speed::from_khz(mhz * 1000)))
    }

    fn mhz(mhz: u64) -> Speed {
        Speed::from_khz(mhz * 1000).unwrap()
    }

    #[test]
    fn a_ladder_is_climbed_down_one_speed_at_a_time() {
        let ladder = ladder(&[800, 300, 1000, 800]).unwrap();
        let speeds: Vec<Speed> = ladder.speeds().collect();
        assert_eq!(speeds, [mhz(300), mhz(800), mhz(1000)]);
        assert_eq!(ladder.below(mhz(1000)), Some(mhz(800)));
        assert_eq!(ladder.below(mhz(900)), Some(mhz(800)));
        assert_eq!(ladder.below(ladder.lowest()), None);
        assert_eq!(ladder.at_least(mhz(301)), mhz(800));
        assert_eq!(ladder.at_least(mhz(5000)), ladder.highest());
    }

    #[test]
    fn no_speed_is_no_ladder_and_zero_no_speed() {
        assert_eq!(ladder(&[]), None);
        assert_eq!(ladder(&[0]), None);
        assert!(serde_json::from_str::<Speed>("0").is_err());
        assert_eq!(serde_json::from_str::<Speed>("800000").unwrap(), mhz(800));
    }
}
