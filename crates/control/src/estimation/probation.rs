//! Probation: a starving thread's chance to show its period.
//!
//! This file says on which terms a thread is on probation, and how long probations last. A
//! probation costs other programs CPU time, and a batch program starves, too. So the threads of a
//! process go on probation together only if the process hears a clock (`run_loop/reviews.rs`). One
//! at a time of each payer's other threads is on probation, with pauses that grow to a minute.

use std::collections::HashMap;

use onbeat_decide::supervisor::Limits;
use onbeat_model::{Bandwidth, Instant, Span};

use crate::tuning::starvation::{FIRST_PAUSE, LONGEST_PAUSE_ALONE, PROBATION, PROBATION_PERIOD};

/// The answer to whether a probation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbationEnd {
    /// It ends then.
    NotYet(Instant),
    /// It is over, and the thread has shown no rhythm.
    InVain,
    /// The thread is not on probation.
    NotOnProbation,
}

/// The reservation of a thread on probation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Terms {
    /// The share of a CPU.
    pub(crate) share: Bandwidth,
    /// Its period.
    pub(crate) period: Span,
}

impl Terms {
    /// The terms for a starving thread, of which a period may be expected.
    pub(crate) fn of(expected: Option<Span>) -> Self {
        Self {
            share: Bandwidth::from_cpus(Limits::DEFAULT_PER_TASK),
            period: expected.unwrap_or(PROBATION_PERIOD),
        }
    }
}

/// The present probations, and those of threads without a clock.
#[derive(Debug, Default)]
pub(crate) struct Probations {
    until: Instant,
    /// By payer.
    alone: HashMap<u32, Alone>,
}

/// The probations of a payer's threads without a clock.
#[derive(Clone, Copy, Debug, Default)]
struct Alone {
    times: u32,
    not_before: Instant,
}

impl Probations {
    /// The end of the present probations.
    pub(crate) const fn until(&self) -> Instant {
        self.until
    }

    /// Has all present probations last until `until` at least, and returns their end.
    pub(crate) fn extend(&mut self, until: Instant) -> Instant {
        self.until = self.until.max(until);
        self.until
    }

    /// True if one of the payer's threads without a clock may go on probation now. Counts it.
    pub(crate) fn admits_alone(&mut self, payer: u32, now: Instant) -> bool {
        let alone = self.alone.entry(payer).or_default();
        if now < alone.not_before {
            return false;
        }
        let pause = FIRST_PAUSE.doubled(alone.times, LONGEST_PAUSE_ALONE);
        alone.times = alone.times.saturating_add(1);
        alone.not_before = now + PROBATION + pause;
        true
    }

    /// Ends the pause of a payer because one of its threads has shown a rhythm.
    pub(crate) fn proved(&mut self, payer: u32) {
        self.alone.remove(&payer);
    }
}
