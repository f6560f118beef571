//! A thread's period, as inferred from its bursts.

use serde::{Deserialize, Serialize};

use crate::{Instant, Span};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rhythm {
    #[serde(rename = "period_ns")]
    pub period: Span,
    /// One release: the others are whole periods away from it.
    #[serde(rename = "phase_ns")]
    pub phase: Instant,
    /// The standard deviation of the releases around the beat.
    #[serde(rename = "jitter_ns")]
    pub jitter: Span,
    /// How probable it is that the period is right.
    pub confidence: f64,
}

impl Rhythm {
    /// The release that `at` belongs to: the last beat at or before it.
    #[must_use]
    pub fn release_before(&self, at: Instant) -> Instant {
        let period = self.period.as_ns() as i128;
        if period == 0 {
            return at;
        }
        let since = i128::from(at.as_ns()) - i128::from(self.phase.as_ns());
        let release = i128::from(at.as_ns()) - since.rem_euclid(period);
        Instant::from_ns(u64::try_from(release).unwrap_or(0))
    }

    /// The beats nearest to `at`, and how far behind it `at` is (negative: ahead), in nanoseconds.
    #[must_use]
    pub fn nearest_release(&self, at: Instant) -> (Instant, i64) {
        let before = self.release_before(at);
        let after = before + self.period;
        if at.since(before) <= after.since(at) {
            (before, at.offset_from(before))
        } else {
            (after, at.offset_from(after))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_whole_periods_from_the_phase_on_both_sides_of_it() {
        let rhythm = Rhythm {
            period: Span::from_ns(40),
            phase: Instant::from_ns(100),
            jitter: Span::ZERO,
            confidence: 1.0,
        };
        let at = Instant::from_ns;
        for (time, before) in [(139, 100), (140, 140), (61, 60), (5, 0)] {
            assert_eq!(rhythm.release_before(at(time)), at(before));
        }
        assert_eq!(rhythm.nearest_release(at(135)), (at(140), -5));
    }
}
