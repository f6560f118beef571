//! The record of threads that are not tracked: their wakeups, and which of them are to be watched.
//!
//! By payer: one user's threads may wake thousands, and another one's server is to be found all the
//! same. The record takes 25 KiB for each at most.

use std::collections::HashMap;

use onbeat_model::{Instant, TaskId};

use super::review::WATCHED;

/// The most threads of a payer that are counted, and rejected: 50 bytes each.
const KNOWN: usize = 256;
/// The wakeups exchanged with a tracked thread from which on a thread is watched.
const WORTH_WATCHING: f64 = 6.0;
/// The share of a count that remains a review later: 3 wakeups a second sum up to 0.75 / (1 -
/// 0.875) = 6.
const KEPT: f64 = 0.875;

#[derive(Default)]
pub(super) struct Candidates {
    is_worth_a_look: bool,
    /// By payer, and the thread's number.
    known: HashMap<u32, KnownThreads>,
    /// Why the threads with these numbers are to be watched.
    pub(super) requested: HashMap<u32, Requested>,
}

#[derive(Default)]
struct KnownThreads {
    exchanges: HashMap<u32, ExchangedWakeups>,
    rejected: HashMap<u32, Rejection>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangedWakeups {
    pub(super) with: TaskId,
    weight: f64,
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
    /// True if one has come to be worth watching since this was last asked.
    pub(super) fn take_worth_a_look(&mut self) -> bool {
        std::mem::take(&mut self.is_worth_a_look)
    }

    /// The thread `tid` exchanged `count` wakeups with the tracked one `with` of that `payer`.
    pub(super) fn exchanged(&mut self, tid: u32, (with, payer): (TaskId, u32), count: u64) {
        let known = self.known.entry(payer).or_default();
        let has_room = known.exchanges.len() < KNOWN
            && (known.rejected.len() < KNOWN || known.rejected.contains_key(&tid));
        if !has_room && !known.exchanges.contains_key(&tid) {
            return;
        }
        let new = ExchangedWakeups { with, weight: 0.0 };
        let exchange = known.exchanges.entry(tid).or_insert(new);
        let before = exchange.weight;
        exchange.weight += count as f64;
        exchange.with = with;
        self.is_worth_a_look |= before < WORTH_WATCHING && exchange.weight >= WORTH_WATCHING;
    }

    /// Those that are worth watching, with their payers: the best first.
    pub(super) fn worth_watching(&self, now: Instant) -> Vec<((u32, u32), ExchangedWakeups)> {
        let all = self.known.iter().flat_map(|(payer, known)| {
            let worth = known.exchanges.iter().filter(|(tid, exchange)| {
                let rejection = known.rejected.get(tid);
                exchange.weight >= WORTH_WATCHING
                    && !self.requested.contains_key(tid)
                    && rejection.is_none_or(|rejection| rejection.until <= now)
            });
            worth.map(|(tid, exchange)| ((*payer, *tid), *exchange))
        });
        let mut all: Vec<_> = all.collect();
        all.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight).then(a.0.cmp(&b.0)));
        all
    }

    pub(super) fn take_request(&mut self, tid: u32) -> Option<Requested> {
        let requested = self.requested.remove(&tid)?;
        let known = self.known.entry(requested.payer).or_default();
        known.exchanges.remove(&tid);
        Some(requested)
    }

    /// Wakeups of long ago count ever less.
    pub(super) fn forget_exchanges(&mut self) {
        self.known.retain(|_, known| {
            known.exchanges.retain(|_, exchange| {
                exchange.weight *= KEPT;
                // One wakeup counts for 4 s.
                exchange.weight >= 1.0 - KEPT
            });
            !known.exchanges.is_empty() || !known.rejected.is_empty()
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
        for known in self.known.values_mut() {
            if known.rejected.len() >= KNOWN {
                known.rejected.retain(|_, rejection| rejection.until > now);
            }
        }
    }

    /// It is not to be watched again soon for that payer: for as long as it may be watched, and
    /// twice as long each time.
    pub(super) fn reject(&mut self, payer: u32, tid: u32, now: Instant) {
        self.expire_rejections(now);
        let known = self.known.entry(payer).or_default();
        known.exchanges.remove(&tid);
        if known.rejected.len() < KNOWN || known.rejected.contains_key(&tid) {
            let rejection = known.rejected.entry(tid).or_default();
            rejection.until = now + WATCHED.doubled(rejection.times, WATCHED * 64);
            rejection.times += 1;
        }
        let is_theirs = |requested: &Requested| requested.payer == payer;
        if self.requested.get(&tid).is_some_and(is_theirs) {
            self.requested.remove(&tid);
        }
    }
}
