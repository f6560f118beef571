//! Job separator: cuts a periodic thread's bursts into jobs, so that misses are seen from outside.
//!
//! # The rule
//! Let the beats be the releases of the [`Rhythm`], `P` its period, and the *slack* three times its
//! jitter, but at least `P/50` and at most `P/8`.
//!
//! 1. A burst's *own beat* is the last one at or before its wakeup plus the slack: a job that wakes
//!    slightly early belongs to the coming beat.
//! 2. A burst whose own beat is that of the job at hand belongs to that job, however long it lasts:
//!    a burst that runs past the next release is still the earlier job, which is then late.
//! 3. Any other burst ends the job at hand and begins the job of its own beat. Beats in between had
//!    no job: the thread skipped them, or did their work inside the long burst.
//! 4. Except while the thread catches up: if the job at hand ended after the next release, and the
//!    thread then slept no longer than the slack, the burst is the job of that next release. So the
//!    overdue jobs follow each other, each as late as it is, until the thread sleeps again or has
//!    reached its own beat.
//!
//! # Assumptions
//! 1. The bursts are one thread's, in the order of their wakeups.
//! 2. While it catches up, one burst is one job.
//! 3. A thread that finds its next timer already expired does not block, so several overdue jobs
//!    may hide in one burst. From outside they are one job, released when the first was, with the
//!    execution time of all; its tardiness tells how far the thread was behind.

mod marked;
mod substitutes;

use crate::period::track::narrowest_gate;
use crate::period::{COARSEST, FAR};
use onbeat_model::{Burst, Job, Rhythm, Span};

pub use marked::MarkedJobs;
pub use substitutes::{Substitutes, deadline};

#[derive(Clone, Debug)]
pub struct Separator {
    rhythm: Rhythm,
    slack: Span,
    job: Option<Job>,
}

impl Separator {
    #[must_use]
    pub fn new(rhythm: Rhythm) -> Self {
        Self {
            rhythm,
            slack: slack(&rhythm),
            job: None,
        }
    }

    /// Takes in a burst; gives the job that it ends, if it begins another.
    pub fn hear(&mut self, burst: &Burst) -> Option<Job> {
        let own = self.rhythm.release_before(burst.woke + self.slack);
        let release = match &mut self.job {
            None => own,
            Some(job) if own <= job.release + self.rhythm.period / 2 => {
                job.ended = job.ended.max(burst.blocked);
                job.executed += burst.executed;
                job.waited += burst.waited();
                job.bursts = job.bursts.saturating_add(1);
                job.exhausted |= burst.exhausted;
                return None;
            }
            Some(job) => {
                let next = self
                    .rhythm
                    .nearest_release(job.release + self.rhythm.period);
                let overran = job.ended > next.0;
                if overran && burst.woke.since(job.ended) <= self.slack {
                    next.0
                } else {
                    own
                }
            }
        };
        self.job
            .replace(Job::of(burst, release, release + self.rhythm.period))
    }

    /// Cuts along the beats of `rhythm` from now on: the tracked rhythm drifts, or has changed. The
    /// job at hand keeps its release and deadline.
    pub fn retune(&mut self, rhythm: Rhythm) {
        self.rhythm = rhythm;
        self.slack = slack(&rhythm);
    }

    /// The CPUs have another speed now, at which what the job at hand has done so far would have
    /// taken `factor` times as long: so a job's cycles are its execution time, whatever speeds it
    /// had (GRACE-OS, section 2.2).
    pub fn speed_changed(&mut self, factor: f64) {
        if let Some(job) = &mut self.job {
            job.executed = job.executed.scale(factor);
        }
    }

    /// The job at hand, as far as it got: for when the thread exits or tracking ends.
    pub fn finish(&mut self) -> Option<Job> {
        self.job.take()
    }
}

/// How much before its beat a job may wake: most of its jitter, but never so much that a late burst
/// of the job before would be taken for it.
fn slack(rhythm: &Rhythm) -> Span {
    rhythm
        .jitter
        .scale(FAR)
        .max(rhythm.period.scale(narrowest_gate()))
        .min(rhythm.period / (2 * COARSEST as u64))
}

#[cfg(test)]
mod tests;
