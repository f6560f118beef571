//! Notices that something rare has become frequent: Page's cumulative sum test (Biometrika 41,
//! 1954).
//!
//! Each job either shows the thing or does not. The score multiplies the likelihood ratios between
//! "now every second job shows it" and "as often as ever", and never falls below one (the sum of
//! logarithms that never falls below zero, without the logarithms); an alarm is a score of
//! [`alarm`]. By Lorden's bound (Annals of Mathematical Statistics 42, 1971), jobs that go on as
//! ever alarm less than once in [`alarm`], and far less in practice, whatever their habit; and two
//! in a row alarm if it was unheard of.

use super::MEMORY;
use crate::period::{FALSE_ALARM_RATE, FEWEST, NEARLY_ALL};

/// The score that is an alarm, by Lorden's bound.
fn alarm() -> f64 {
    1.0 / FALSE_ALARM_RATE
}

/// Jobs over which the habit is learned. Nothing is rarer than one of them.
fn memory() -> f64 {
    2.0 * f64::from(MEMORY)
}

/// One thing that a job may show, how often it usually does, and the score.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surprise {
    habit: f64,
    jobs: f64,
    score: f64,
}

impl Default for Surprise {
    fn default() -> Self {
        Self {
            habit: 1.0 - NEARLY_ALL,
            jobs: FEWEST as f64,
            score: 1.0,
        }
    }
}

impl Surprise {
    pub(super) fn hear(&mut self, shown: bool) -> bool {
        let usual = self.habit.clamp(1.0 / memory(), 0.5);
        let ratio = if shown {
            0.5 / usual
        } else {
            (1.0 - 0.5) / (1.0 - usual)
        };
        self.score = (self.score * ratio).max(1.0);
        self.jobs = (self.jobs + 1.0).min(memory());
        self.habit += (f64::from(u8::from(shown)) - self.habit) / self.jobs;
        let alarm = self.score >= alarm();
        if alarm {
            self.score = 1.0;
        }
        alarm
    }
}
