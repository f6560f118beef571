//! The CPU time that a user, a group or a task may still use above ordinary priority.
//!
//! A soft reservation lets a task use more than it holds, and a quota bounds what all use. So the
//! CPU time that reserved tasks use is taken from the quota's bucket, which fills as fast as the
//! quota says, and from one of the task's own, which fills as fast as its reservation says. While
//! both are empty, the task is an ordinary one. An empty bucket counts as empty until it is half
//! full again.

use onbeat_model::{Bandwidth, Instant, Span};

/// The size of the bucket, as a time of the quota's bandwidth.
const HOLDS: Span = Span::from_ms(1000);

#[derive(Clone, Copy, Debug)]
pub(super) struct Spending {
    /// CPU time; below zero is owed.
    left_ns: i64,
    at: Instant,
    is_over: bool,
}

impl Spending {
    pub(super) fn new(quota: Bandwidth, now: Instant) -> Self {
        Self {
            left_ns: full_ns(quota),
            at: now,
            is_over: false,
        }
    }

    pub(super) const fn of(left: Span, now: Instant) -> Self {
        Self {
            left_ns: ns(left),
            at: now,
            is_over: false,
        }
    }

    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// When it is no longer over, if nothing is used until then.
    pub(super) fn made_up_at(&self, quota: Bandwidth) -> Instant {
        let lacks = (full_ns(quota) / 2).saturating_sub(self.left_ns).max(0);
        let takes = lacks as f64 / quota.as_cpus().max(f64::MIN_POSITIVE);
        self.at + Span::from_ns(takes.ceil() as u64)
    }

    /// Takes `used_ns` out at `now`; it is negative if too much was counted before. True if from
    /// now on it is over, or no longer over.
    pub(super) fn spend(&mut self, used_ns: i64, quota: Bandwidth, now: Instant) -> bool {
        let full = full_ns(quota);
        let filled = ns(quota.runtime_in(now.since(self.at)));
        self.at = self.at.max(now);
        let left = self.left_ns.saturating_add(filled);
        self.left_ns = left.saturating_sub(used_ns).min(full);
        let is_over = self.left_ns < 0 || (self.is_over && self.left_ns < full / 2);
        std::mem::replace(&mut self.is_over, is_over) != is_over
    }

    /// Whether it is full: then nothing has to be remembered.
    pub(super) fn is_full(&self, quota: Bandwidth) -> bool {
        self.left_ns >= full_ns(quota)
    }
}

fn full_ns(quota: Bandwidth) -> i64 {
    ns(quota.runtime_in(HOLDS))
}

pub(super) const fn ns(span: Span) -> i64 {
    let ns = span.as_ns();
    if ns > i64::MAX as u64 {
        i64::MAX
    } else {
        ns as i64
    }
}
