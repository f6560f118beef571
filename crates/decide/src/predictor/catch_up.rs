//! What every predictor does when a budget runs out: more at once, and back as soon as it helped.
//!
//! A hard server (LFS++, section 3.2) makes a job that overran wait for the next period, where it
//! delays the next job in turn: with 10% of slack, an overrun of a whole budget would be felt in ten
//! jobs. So the runtime is raised at once, and the thread is back in step after one or two. From then
//! on the overrun is known by its measured size and part of the predictor's window; holding the raise
//! any longer would be paying twice.
//!
//! Not every exhaustion is an overrun. A server that is out of step with its thread (the thread was
//! in the middle of a job when it got the reservation, or it blocks several times a job) gives a job
//! the rest of one period's budget and the begin of the next one's: it runs out although there is
//! enough in each. As long as such jobs end in time, more runtime would buy nothing.

use onbeat_model::{Instant, Job, Reservation, Span};

/// After so many jobs in a row that were interrupted without need, a further interruption is no
/// reason for a raise.
const HARMLESS_MOST: u32 = 3;

/// The raise in force, and whether raises have been of any use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CatchUp {
    raised: Option<Raise>,
    harmless: u32,
}

#[derive(Clone, Copy, Debug)]
struct Raise {
    runtime: Span,
    exhausted: Span,
    at: Instant,
}

impl CatchUp {
    /// The budget of `held` ran out at `at`: raises by `factor`, again and again, up to `most` times
    /// the runtime that ran out first.
    pub(crate) fn exhausted(&mut self, at: Instant, held: Reservation, factor: f64, most: f64) {
        if self.harmless >= HARMLESS_MOST {
            return;
        }
        let factor = factor.max(1.0);
        let first = self.raised.map_or(held.runtime(), |raise| raise.exhausted);
        let so_far = self.raised.map_or(Span::ZERO, |raise| raise.runtime);
        let runtime = held
            .runtime()
            .scale(factor)
            .min(first.scale(most.max(factor)));
        self.raised = Some(Raise {
            runtime: runtime.max(so_far),
            exhausted: first,
            at,
        });
    }

    /// A job is done: one that ended in time ends the raise.
    pub(crate) fn job(&mut self, job: &Job) {
        let Some(raise) = self.raised else {
            if !job.exhausted || job.missed() {
                self.harmless = 0;
            }
            return;
        };
        if job.missed() || job.ended < raise.at {
            self.harmless = 0;
            return;
        }
        if job.exhausted && job.executed <= raise.exhausted {
            self.harmless += 1;
        } else if !job.exhausted {
            self.harmless = 0;
        }
        self.raised = None;
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The larger one of `planned` and the raise.
    pub(crate) fn over(&self, planned: Option<Span>) -> Option<Span> {
        match (planned, self.raised) {
            (Some(planned), Some(raise)) => Some(planned.max(raise.runtime)),
            (planned, raise) => planned.or(raise.map(|raise| raise.runtime)),
        }
    }
}
