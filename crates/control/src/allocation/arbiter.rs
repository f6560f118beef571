//! All requests, and the adjustments of the reservations in force that follow from them, in their
//! right order.
//!
//! If all requests fit, each that changed is granted whole, up to the cap of one task. If not, all
//! are looked at, and compressed.

use std::collections::HashMap;

use onbeat_decide::hysteresis::{Hysteresis, Thresholds};
use onbeat_decide::supervisor::{self, GaveWay, GrantReason, Limits, Request};
use onbeat_model::{Bandwidth, Refusal, Reservation, TaskId};

use super::bandwidth;
use crate::Why;
use crate::slots::{BySlot, Slot};

pub(crate) struct Arbiter {
    threads: BySlot<RequestRecord>,
    /// What all requests together want.
    sum: Bandwidth,
    limits: Limits,
    /// The threads whose requests changed since the last arbitration.
    changed: Vec<Slot>,
    /// Not every request was granted whole.
    is_compressed: bool,
    /// The next arbitration looks at all requests.
    is_stale: bool,
}

#[derive(Debug, Default)]
struct RequestRecord {
    request: Option<Request>,
    hysteresis: Hysteresis,
    /// Why it is to be settled in the next arbitration.
    asked: Option<Why>,
}

pub(crate) struct Adjustment {
    pub(crate) slot: Slot,
    pub(crate) target: Option<Reservation>,
    pub(crate) why: Why,
}

impl Arbiter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            threads: BySlot::default(),
            sum: Bandwidth::ZERO,
            limits,
            changed: Vec::new(),
            is_compressed: false,
            is_stale: false,
        }
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.is_stale = true;
    }

    /// Has the next arbitration look at all requests.
    pub(crate) const fn look_at_all(&mut self) {
        self.is_stale = true;
    }

    /// The threads whose requests changed since the last arbitration.
    pub(crate) fn changed(&self) -> &[Slot] {
        &self.changed
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = (Slot, &Request)> {
        let all = self.threads.iter();
        all.filter_map(|(slot, thread)| Some((slot, thread.request.as_ref()?)))
    }

    /// A new thread is in `slot`, whose request changes at these `thresholds`.
    pub(crate) fn enter(&mut self, slot: Slot, thresholds: Thresholds) {
        *self.threads.get_mut(slot) = RequestRecord {
            hysteresis: Hysteresis::new(thresholds),
            ..RequestRecord::default()
        };
    }

    pub(crate) fn forget(&mut self, slot: Slot) {
        self.threads.take(slot);
        self.changed.retain(|&other| other != slot);
    }

    pub(crate) fn has_request(&self, slot: Slot) -> bool {
        self.threads.get(slot).request.is_some()
    }

    pub(crate) fn wanted(&self, slot: Slot) -> Option<Reservation> {
        Some(self.threads.get(slot).request?.wanted)
    }

    /// The thread's demand has changed, to what `wanted` would serve: what it is to request now, if
    /// the difference from its present request is worth it.
    pub(crate) fn consider(&mut self, slot: Slot, wanted: Reservation) -> Option<Reservation> {
        let former = self.wanted(slot);
        let thread = self.threads.get_mut(slot);
        thread.hysteresis.consider(former, wanted)
    }

    /// Has the next change of the thread's demand count from the beginning.
    pub(crate) fn forget_changes(&mut self, slot: Slot) {
        self.threads.get_mut(slot).hysteresis.forget();
    }

    /// Settles the thread's request in this turn. If there are several reasons, the last one
    /// counts, but a change of demand counts only alone.
    pub(crate) fn ask(&mut self, slot: Slot, why: Why) {
        let thread = self.threads.get_mut(slot);
        if thread.asked.is_none() {
            self.changed.push(slot);
        }
        if thread.asked.is_none() || !matches!(why, Why::Demand { .. }) {
            thread.asked = Some(why);
        }
    }

    pub(crate) fn put(&mut self, slot: Slot, request: Request) {
        let before = self.threads.get_mut(slot).request.replace(request);
        let before = before.map(|before| before.wanted);
        self.sum = self.sum - bandwidth(before) + request.wanted.bandwidth();
    }

    /// Requests `wanted` for the thread, never to be compressed.
    pub(crate) fn put_fixed(&mut self, slot: Slot, task: TaskId, wanted: Reservation) {
        let request = Request {
            task,
            wanted,
            least: wanted.bandwidth(),
            weight: 1.0,
        };
        self.put(slot, request);
    }

    /// Lowers the thread's request to `wanted`. False if there is none.
    pub(crate) fn lower(&mut self, slot: Slot, wanted: Reservation) -> bool {
        let Some(request) = self.threads.get(slot).request else {
            return false;
        };
        let request = Request {
            wanted,
            least: request.least.min(wanted.bandwidth()),
            ..request
        };
        self.put(slot, request);
        true
    }

    pub(crate) fn weigh(&mut self, slot: Slot, weight: f64) {
        let request = &mut self.threads.get_mut(slot).request;
        if let Some(request) = request.as_mut().filter(|request| request.weight != weight) {
            request.weight = weight;
            self.is_stale |= self.is_compressed;
        }
    }

    pub(crate) fn withdraw(&mut self, slot: Slot) {
        if let Some(request) = self.threads.get_mut(slot).request.take() {
            self.sum = self.sum - request.wanted.bandwidth();
            self.is_stale |= self.is_compressed;
        }
    }

    /// Tests whether `wanted` fits whole beside the reservations promised to others.
    /// Fails with [`Refusal::NoRoom`] if it does not.
    pub(crate) fn admits(&self, slot: Slot, wanted: Reservation) -> Result<(), Refusal> {
        let bandwidth = wanted.bandwidth();
        if bandwidth > self.limits.per_task {
            return Err(Refusal::NoRoom {
                wanted: bandwidth,
                advice: format!("no task may have more than {}", self.limits.per_task),
            });
        }
        let others = self.requests().filter(|(other, _)| *other != slot);
        let others: Bandwidth = others.map(|(_, request)| request.least).sum();
        if others + bandwidth > self.limits.total {
            return Err(Refusal::NoRoom {
                wanted: bandwidth,
                advice: format!(
                    "{others} of {} is held by others already: ask for less, or end another reservation",
                    self.limits.total
                ),
            });
        }
        Ok(())
    }

    /// What is to be changed for the requests, those reservations first that shrink, so that there
    /// is room for the others at any moment; none if no request changed. No more than `admitted` is
    /// handed out, if the kernel has admitted no more.
    pub(crate) fn arbitrate(
        &mut self,
        held: &dyn Fn(Slot) -> Option<Reservation>,
        admitted: Option<Bandwidth>,
    ) -> Option<Vec<Adjustment>> {
        if self.changed.is_empty() && !self.is_stale {
            return None;
        }
        let limits = Limits {
            total: self.limits.total.min(admitted.unwrap_or(self.limits.total)),
            ..self.limits
        };
        let changed = std::mem::take(&mut self.changed);
        let (slots, requests): (Vec<Slot>, Vec<Request>) =
            if self.is_stale || self.is_compressed || self.sum > limits.total {
                self.requests().unzip()
            } else {
                let of = |&slot: &Slot| Some((slot, self.threads.get(slot).request?));
                changed.iter().filter_map(of).unzip()
            };
        let outcome = supervisor::arbitrate(&requests, &limits);
        let gave_way = outcome.gave_way.iter();
        self.is_compressed = gave_way.clone().any(|how| how.why != GrantReason::TaskCap);
        self.is_stale = false;
        let gave_way: HashMap<TaskId, (usize, GaveWay)> = (1..)
            .zip(gave_way.filter(|_| self.is_compressed))
            .map(|(turn, how)| (how.task, (turn, *how)))
            .collect();
        let (mut first, mut then) = (Vec::new(), Vec::new());
        for (slot, grant) in slots.into_iter().zip(&outcome.grants) {
            let (held, target) = (held(slot), grant.reservation);
            let thread = self.threads.get(slot);
            let raises = bandwidth(target) > bandwidth(held);
            let is_trifle = raises && !thread.hysteresis.is_raise(held, target);
            if held == target || (is_trifle && thread.asked.is_none()) {
                continue;
            }
            let why = match gave_way.get(&grant.task) {
                Some(&(turn, how)) => Why::GaveWay {
                    turn,
                    of: gave_way.len(),
                    how,
                },
                None => thread.asked.clone().unwrap_or(Why::RoomAgain),
            };
            let order = if raises { &mut then } else { &mut first };
            order.push(Adjustment { slot, target, why });
        }
        for slot in changed {
            self.threads.get_mut(slot).asked = None;
        }
        first.append(&mut then);
        Some(first)
    }
}
