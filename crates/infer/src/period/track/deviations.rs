//! How far a thread's releases usually are from the beat, and what is too far.

use super::narrowest_gate;
use crate::period::{COARSEST, FAR};

/// The growth of the percentile of errors for one beyond it.
const GROWTH: f64 = 0.15;

/// The widest gate, to either side: one bin of the coarsest in all. A thread without a period hits
/// it less often than the third of the time with which a period is lost.
fn widest_gate() -> f64 {
    0.5 / COARSEST as f64
}

/// The 75th percentile of the absolute value of normal errors, in standard deviations.
const PERCENTILE_PER_DEVIATION: f64 = 1.150_35;

fn gate() -> f64 {
    FAR / PERCENTILE_PER_DEVIATION
}

/// A running 75th percentile of the absolute errors, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Errors {
    percentile: f64,
    least: f64,
    most: f64,
}

impl Errors {
    pub(super) fn new(period: f64, deviation: f64) -> Self {
        let most = period * widest_gate() / gate();
        Self {
            percentile: (deviation * PERCENTILE_PER_DEVIATION).min(most),
            least: period * narrowest_gate() / gate(),
            most,
        }
    }

    pub(super) fn record(&mut self, error: f64) {
        let factor = if error.abs() > self.percentile {
            1.0 + GROWTH
        } else {
            1.0 - GROWTH / 3.0
        };
        // From zero nothing could grow.
        self.percentile = (self.percentile * factor).max(1.0).min(self.most);
    }

    /// How far a wakeup may be from the beat to count as a hit.
    pub(super) fn gate(&self) -> f64 {
        self.scale() * gate()
    }

    /// An error as the phase may see it.
    pub(super) fn clip(&self, error: f64) -> f64 {
        let scale = self.scale();
        error.clamp(-2.0 * scale, scale)
    }

    fn scale(&self) -> f64 {
        self.percentile.max(self.least)
    }

    /// An error as the period may see it: less than the phase, because what is late once and stays
    /// late (a timer set anew) moves the phase but not the period.
    pub(super) fn clip_tight(&self, error: f64) -> f64 {
        let scale = self.scale() / 2.0;
        error.clamp(-scale, scale)
    }

    pub(super) fn deviation(&self) -> f64 {
        self.percentile / PERCENTILE_PER_DEVIATION
    }
}
