//! Trials of threads that starve: which one is put on trial, with which others, and for how long.
//!
//! A trial costs other programs CPU time, and a batch program starves, too. So the threads of a process
//! are tried together only if a clock is heard in it; of all others one at a time, and ever more rarely.

use std::collections::HashMap;

use onbeat_model::{Instant, Span};

use super::starvation::{TRIAL, pause_after};

/// The longest pause between two trials of threads without a clock: they then take a twentieth of the
/// time, of one CPU.
const LONGEST_PAUSE_ALONE: Span = Span::from_secs(60);

/// The trials under way, and those that were alone.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    until: Instant,
    /// By payer.
    alone: HashMap<u32, Alone>,
}

/// The trials of a payer's threads without a clock.
#[derive(Clone, Copy, Debug, Default)]
struct Alone {
    times: u32,
    not_before: Instant,
}

impl Trials {
    /// When the trials under way end.
    pub(crate) const fn until(&self) -> Instant {
        self.until
    }

    /// A trial begins that lasts until `until`: so do all.
    pub(crate) fn extend(&mut self, until: Instant) -> Instant {
        self.until = self.until.max(until);
        self.until
    }

    /// Whether a thread of the payer's that has no clock may be tried now; counts it if so.
    pub(crate) fn admits_alone(&mut self, payer: u32, now: Instant) -> bool {
        let alone = self.alone.entry(payer).or_default();
        if now < alone.not_before {
            return false;
        }
        let pause = pause_after(alone.times).min(LONGEST_PAUSE_ALONE);
        alone.times = alone.times.saturating_add(1);
        alone.not_before = now + TRIAL + pause;
        true
    }

    /// A thread of the payer's has shown a rhythm: the next trial need not wait as if it had not.
    pub(crate) fn proved(&mut self, payer: u32) {
        self.alone.remove(&payer);
    }
}
