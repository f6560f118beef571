//! When another speed is wanted, and which: the rule of powernowd in its default mode.
//!
//! Above the band the highest speed at once, below it one speed less. powernowd looks no further;
//! here a fall must not carry the utilisation over the band's other end, or a coarse ladder in a
//! narrow band would be climbed up and down for ever.

use onbeat_model::{Bandwidth, Ladder, Speed};

use super::projection::projected_share;

/// The utilisation of a CPU that is neither too high nor too low.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    low: Bandwidth,
    high: Bandwidth,
}

impl Default for Band {
    /// 20% to 80% (LFS++, section 6.3; powernowd's own default).
    fn default() -> Self {
        Self {
            low: Bandwidth::from_cpus(0.2),
            high: Bandwidth::from_cpus(0.8),
        }
    }
}

impl Band {
    /// A band from `low` to `high`; none unless 0 <= low < high <= 1 CPU.
    #[must_use]
    pub fn new(low: Bandwidth, high: Bandwidth) -> Option<Self> {
        (low < high && high <= Bandwidth::ONE).then_some(Self { low, high })
    }

    /// The utilisation above which the highest speed is wanted.
    #[must_use]
    pub const fn high(&self) -> Bandwidth {
        self.high
    }

    /// The speed that is wanted at this `utilisation` of the busiest CPU; none if the `present` one
    /// is right.
    #[must_use]
    pub fn wants(&self, utilisation: Bandwidth, present: Speed, ladder: &Ladder) -> Option<Speed> {
        if utilisation > self.high {
            let highest = ladder.highest();
            return (highest > present).then_some(highest);
        }
        if utilisation >= self.low {
            return None;
        }
        let lower = ladder.below(present)?;
        (projected_share(utilisation, present, lower) <= self.high).then_some(lower)
    }
}
