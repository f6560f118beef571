//! The record of threads that are not tracked: their wakeups, and which of them are to be watched.
//!
//! By payer: one user's threads may wake thousands, and another one's server is to be found all the
//! same. The record takes 100 KiB at most.

use std::collections::HashMap;

use onbeat_model::{Instant, TaskId};

use super::partners::WATCHED;
use super::shares::{ShareLimits, SharedThreads};

/// The most threads that are counted, and rejected: 100 bytes each.
const KNOWN: ShareLimits = ShareLimits {
    each: 256,
    all: 1024,
};
/// The wakeups exchanged with a tracked thread from which on a thread is watched.
const WORTH_WATCHING: f64 = 6.0;
/// The share of a count that remains a review later: 3 wakeups a second sum up to 0.75 / (1 -
/// 0.875) = 6.
const KEPT: f64 = 0.875;

pub(super) struct Candidates {
    is_worth_a_look: bool,
    exchanges: SharedThreads<ExchangedWakeups>,
    /// Why the threads with these numbers are to be watched.
    pub(super) requested: HashMap<u32, Requested>,
    rejected: SharedThreads<Rejection>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangedWakeups {
    pub(super) with: TaskId,
    pub(super) weight: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Requested {
    pub(super) of: TaskId,
    pub(super) payer: u32,
    pub(super) since: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rejection {
    until: Instant,
    times: u32,
}

impl Candidates {
    pub(super) fn new() -> Self {
        Self {
            is_worth_a_look: false,
            exchanges: SharedThreads::new(KNOWN),
            requested: HashMap::new(),
            rejected: SharedThreads::new(KNOWN),
        }
    }

    /// True if one has come to be worth watching since this was last asked.
    pub(super) fn take_worth_a_look(&mut self) -> bool {
        std::mem::take(&mut self.is_worth_a_look)
    }

    /// The thread `tid` exchanged `count` wakeups with the tracked one `with` of that `payer`.
    pub(super) fn exchanged(&mut self, tid: u32, (with, payer): (TaskId, u32), count: u64) {
        let (key, mut before) = ((payer, tid), 0.0);
        let after = if let Some(exchange) = self.exchanges.get_mut(key) {
            before = exchange.weight;
            exchange.weight += count as f64;
            exchange.with = with;
            exchange.weight
        } else {
            if !self.rejected.has_room(payer) && self.rejected.get(key).is_none() {
                return;
            }
            let weight = count as f64;
            let exchange = ExchangedWakeups { with, weight };
            if !self.exchanges.insert(key, exchange, |other| other.weight) {
                return;
            }
            weight
        };
        self.is_worth_a_look |= before < WORTH_WATCHING && after >= WORTH_WATCHING;
    }

    /// Those that are worth watching, with their payers: each payer's best first, then each one's
    /// second, and so on.
    pub(super) fn worth_watching(&self, now: Instant) -> Vec<((u32, u32), ExchangedWakeups)> {
        let worth = self.exchanges.iter().filter(|(key, exchange)| {
            let rejection = self.rejected.get(*key);
            exchange.weight >= WORTH_WATCHING
                && !self.requested.contains_key(&key.1)
                && rejection.is_none_or(|rejection| rejection.until <= now)
        });
        let mut worth: Vec<_> = worth.map(|(key, exchange)| (key, *exchange)).collect();
        worth.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight).then(a.0.cmp(&b.0)));
        let mut ranks: HashMap<u32, usize> = HashMap::new();
        worth.sort_by_cached_key(|((payer, _), _)| {
            let rank = ranks.entry(*payer).or_default();
            *rank += 1;
            *rank
        });
        worth
    }

    /// The thread is tracked from now on: why, if it was to be watched.
    pub(super) fn take_request(&mut self, tid: u32) -> Option<Requested> {
        let requested = self.requested.remove(&tid)?;
        self.exchanges.remove((requested.payer, tid));
        Some(requested)
    }

    /// Wakeups of long ago count ever less.
    pub(super) fn forget_exchanges(&mut self) {
        self.exchanges.retain(|_, exchange| {
            exchange.weight *= KEPT;
            // One wakeup counts for 4 s.
            exchange.weight >= 1.0 - KEPT
        });
    }

    /// Gives up the threads that were to be watched before `since` and have not come to be tracked.
    pub(super) fn give_up_requests(&mut self, since: Instant, now: Instant) {
        let overdue = self.requested.iter().filter(|(_, r)| r.since < since);
        let overdue: Vec<_> = overdue.map(|(tid, r)| (r.payer, *tid)).collect();
        for (payer, tid) in overdue {
            self.reject(payer, tid, now);
        }
    }

    /// Forgets the rejections whose time is over, of payers that have too many.
    pub(super) fn expire_rejections(&mut self, now: Instant) {
        let crowded = self.rejected.crowded();
        if !crowded.is_empty() {
            self.rejected
                .retain(|payer, rejection| rejection.until > now || !crowded.contains(&payer));
        }
    }

    /// It is not to be watched again soon for that payer: for as long as it may be watched, and
    /// twice as long each time.
    pub(super) fn reject(&mut self, payer: u32, tid: u32, now: Instant) {
        self.expire_rejections(now);
        let key = (payer, tid);
        let times = self
            .rejected
            .get(key)
            .map_or(0, |rejection| rejection.times);
        let rejection = Rejection {
            until: now + WATCHED.doubled(times, WATCHED * 64),
            times: times + 1,
        };
        match self.rejected.get_mut(key) {
            Some(before) => *before = rejection,
            None => {
                let soonest_over = |rejection: &Rejection| rejection.until.as_ns() as f64;
                self.rejected.insert(key, rejection, soonest_over);
            }
        }
        self.exchanges.remove(key);
        let is_theirs = |requested: &Requested| requested.payer == payer;
        if self.requested.get(&tid).is_some_and(is_theirs) {
            self.requested.remove(&tid);
        }
    }
}
