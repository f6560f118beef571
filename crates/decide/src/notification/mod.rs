//! The worth of a missed deadline notification: a raise of the budget, bounded, and nothing
//! lasting.
//!
//! After Banachowski, Wu and Brandt. From their Linux scheduler (sections 3.1.1 and 3.1.2): the
//! raise is proportional to the *block ratio*, the running average of the share of its time that
//! the thread slept; it decays by itself, the faster the less the thread sleeps. From their BEST
//! (section 3.2.2): only of a thread with a period, and only where a deadline can have been missed.
//!
//! A reservation gives one thing more to cheat for, and to judge a cheater by: the CPU time that a
//! raise provides shows in the next jobs, if it was lacking. So notifications come in *appeals*. An
//! appeal begins with the first one accepted. If none of its next [`JURY`] jobs took more than it
//! would have had without the raise, the raise is taken back, and the thread is ignored for a
//! while, twice as long each time. If one did, the appeal goes on, and what it took is in the
//! predictor's window by then. So a thread that cries wolf holds bandwidth that no job needs for
//! [`JURY`] jobs of ever longer times: its share goes to zero.

use onbeat_model::{Instant, Span};

/// The raise by one notification of a thread that always sleeps, as a share of its budget: four
/// lead to `MOST`.
pub const STEP: f64 = 0.25;
/// The largest raise: what one job that is late takes from the next.
pub const MOST: f64 = 1.0;
/// Jobs that do not need a raise before it is taken back.
pub const JURY: u32 = 8;
/// How long notifications are ignored after the first appeal in vain.
pub const FIRST_SILENCE: Span = Span::from_secs(2);
pub const LONGEST_SILENCE: Span = Span::from_secs(3600);
/// Longer than most appeals, which are to end by what jobs took.
const HALF_LIFE: Span = Span::from_secs(1);
/// The weight of the last job in the block ratio: as many jobs as an appeal has.
const WEIGHT: f64 = 0.125;
/// A deadline is an estimate: a job may be late this share of the period before it.
const WINDOW: f64 = 0.25;
/// And this many periods after it.
const LATEST: u64 = 8;
/// A thread that sleeps less computes without an end, and has no deadlines.
const SLEEPLESS: f64 = 0.02;
/// A raise below this share of the budget is over.
const NOTHING: f64 = 0.01;

#[derive(Clone, Copy, Debug)]
pub struct Notification {
    block_ratio: f64,
    raise: f64,
    at: Instant,
    missed: Option<Instant>,
    /// Jobs since the raise was last needed; none if there is no appeal.
    unneeded: Option<u32>,
    silence: Span,
    silent_until: Instant,
}

impl Default for Notification {
    fn default() -> Self {
        Self {
            block_ratio: 0.0,
            raise: 0.0,
            at: Instant::ZERO,
            missed: None,
            unneeded: None,
            silence: FIRST_SILENCE,
            silent_until: Instant::ZERO,
        }
    }
}

impl Notification {
    /// The thread slept for `slept`, and then wanted to run for `ready`.
    pub fn blocked(&mut self, slept: Span, ready: Span) {
        let whole = slept + ready;
        if !whole.is_zero() {
            self.block_ratio += WEIGHT * (slept.ratio(whole) - self.block_ratio);
        }
    }

    /// It sleeps now and then, as a thread with deadlines does. One that has turned to computing
    /// cannot keep by notifications what it had as a periodic thread (Fig. 7 (b)).
    #[must_use]
    pub fn is_credible(&self) -> bool {
        self.block_ratio >= SLEEPLESS
    }

    /// The thread says at `at` that it missed a deadline, and `deadline` is the one that its
    /// present job had; its period is `period`. True if it is believed, and its raise larger than
    /// before.
    pub fn missed(&mut self, at: Instant, deadline: Instant, period: Span) -> bool {
        self.decay(at);
        let earliest = deadline - period.scale(WINDOW);
        let is_possible = at >= earliest && at <= deadline + period * LATEST;
        let is_new = self
            .missed
            .is_none_or(|before| deadline.since(before) >= period / 2);
        if !is_possible || !is_new || at < self.silent_until {
            return false;
        }
        let before = self.raise;
        self.raise = (before + STEP * self.block_ratio).min(MOST);
        if self.raise < NOTHING {
            self.raise = before;
            return false;
        }
        self.missed = Some(deadline);
        self.unneeded.get_or_insert(0);
        self.raise > before
    }

    #[must_use]
    pub const fn is_in_appeal(&self) -> bool {
        self.unneeded.is_some()
    }

    /// A job ended at `at` that took `executed`, where `planned` was its budget without the raise.
    pub fn job(&mut self, at: Instant, executed: Span, planned: Span) {
        self.decay(at);
        let Some(unneeded) = &mut self.unneeded else {
            return;
        };
        if executed > planned {
            *unneeded = 0;
            self.silence = FIRST_SILENCE;
            return;
        }
        *unneeded += 1;
        if *unneeded >= JURY {
            self.raise = 0.0;
            self.unneeded = None;
            self.silent_until = at + self.silence;
            self.silence = (self.silence * 2).min(LONGEST_SILENCE);
        }
    }

    /// By what factor the budget is raised, as of the last job or notification: from 1 to 1 +
    /// [`MOST`].
    #[must_use]
    pub fn factor(&self) -> f64 {
        1.0 + self.raise
    }

    fn decay(&mut self, now: Instant) {
        let passed = now.since(self.at);
        self.at = self.at.max(now);
        if self.raise <= 0.0 {
            return;
        }
        let half_lives = passed.ratio(HALF_LIFE.scale(self.block_ratio.max(NOTHING)));
        self.raise *= (-half_lives).exp2();
        if self.raise < NOTHING {
            self.raise = 0.0;
        }
    }
}

#[cfg(test)]
mod tests;
