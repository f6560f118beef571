//! What a user or a group may still use above ordinary priority before its reservations become
//! ceilings.
//!
//! A soft reservation lets a task use more than it holds, and a quota is a ceiling all the same. So
//! the CPU time that reserved tasks use is taken from a bucket, which fills as fast as the quota
//! says. Once it is empty the reservations are hard, and together they are within the quota; once
//! it is half full again they are soft.

use onbeat_model::{Bandwidth, Instant, Span};

/// What the bucket holds: so much of the quota's bandwidth. Raising it lets somebody use more than
/// the quota for longer; with less, one film's start empties it.
const HOLDS: Span = Span::from_ms(1000);

/// The longest period of a reservation that may be soft: a task that never blocks is noticed when
/// its runtime is used up, which under reclaiming is at the end of a period.
pub(super) const LONGEST_SOFT_PERIOD: Span = Span::from_ms(200);

/// A bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spending {
    /// CPU time; below zero is owed.
    left_ns: i64,
    at: Instant,
    is_over: bool,
}

impl Spending {
    /// A full one at `now`.
    pub(super) fn new(quota: Bandwidth, now: Instant) -> Self {
        Self {
            left_ns: full_ns(quota),
            at: now,
            is_over: false,
        }
    }

    /// Whether more was used than the quota gives.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// So much CPU time was used up to `now`. True if from now on it is over, or no longer over.
    pub(super) fn spend(&mut self, used: Span, quota: Bandwidth, now: Instant) -> bool {
        let full = full_ns(quota);
        let filled = ns(quota.runtime_in(now.since(self.at)));
        self.at = self.at.max(now);
        let left = self.left_ns.saturating_add(filled).min(full);
        // Nobody owes more than can be made up for in the time of a bucket.
        self.left_ns = left.saturating_sub(ns(used)).max(-full);
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

const fn ns(span: Span) -> i64 {
    let ns = span.as_ns();
    if ns > i64::MAX as u64 {
        i64::MAX
    } else {
        ns as i64
    }
}
