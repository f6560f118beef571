//! From a thread's demand to what it is to have: requests, and how they are arbitrated.
//!
//! ```text
//!  demand ──wanted──▶ consider ──▶ requests ──arbitrate──▶ adjustments
//! ```
//!
//! Nothing in this folder knows threads or the actuator: the run loop passes the adjustments to
//! `enforcement`, one after the other.
//!
//! A server whose period is the task's own needs the least bandwidth and forgives most error
//! (LFS++, section 4 and Fig. 1). Where the kernel does not take that period, a whole part or a
//! whole multiple of it comes next.

use std::collections::HashMap;

use onbeat_decide::hysteresis::Hysteresis;
use onbeat_decide::supervisor::{self, GaveWay, GrantReason, Limits, Request};
use onbeat_model::{Bandwidth, Capacity, Refusal, Reservation, Span, TaskId};

use crate::Why;
use crate::estimation::JobDemand;
use crate::task::{BySlot, Slot};

/// What each period of a server gets beyond the job's own runtime: the kernel charges what it does
/// around a job, and on a busy machine that differs from job to job.
const MARGIN: Span = Span::from_us(20);
/// A stage has other work, too: the least share of its period.
const LEAST_OF_STAGE: f64 = 0.05;

pub(crate) fn bandwidth(reservation: Option<Reservation>) -> Bandwidth {
    reservation.map_or(Bandwidth::ZERO, |r| r.bandwidth())
}

/// The server period for a task's period, and how the job's runtime changes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fit {
    period: Span,
    multiply: u64,
    divide: u64,
}

fn fit(period: Span, capacity: &Capacity) -> Fit {
    let ns = period.as_ns().max(1);
    let shortest = capacity.shortest_period.as_ns().max(1);
    let longest = capacity.longest_period.as_ns().max(shortest);
    let (multiply, divide) = if ns > longest {
        (1, ns.div_ceil(longest))
    } else if ns < shortest {
        (shortest.div_ceil(ns), 1)
    } else {
        (1, 1)
    };
    Fit {
        period: Span::from_ns((ns.saturating_mul(multiply) / divide).clamp(shortest, longest)),
        multiply,
        divide,
    }
}

/// The reservation that gives `runtime` to each job of a task with this `period`, at least
/// `floor` in each period of the server and at most the whole of it.
fn reservation(
    runtime: Span,
    period: Span,
    floor: Span,
    capacity: &Capacity,
) -> Option<Reservation> {
    let fit = fit(period, capacity);
    let runtime = Span::from_ns(
        runtime
            .as_ns()
            .saturating_mul(fit.multiply)
            .div_ceil(fit.divide),
    );
    let runtime = (runtime + MARGIN)
        .max(floor)
        .max(capacity.shortest_runtime)
        .min(fit.period);
    Reservation::implicit(runtime, fit.period).ok()
}

/// The reservation that serves a thread's `demand`, within the `ceiling` that its owner may have
/// for it; none if that is too little.
pub(crate) fn wanted(
    demand: &JobDemand,
    ceiling: Option<Bandwidth>,
    capacity: &Capacity,
) -> Option<Reservation> {
    let floor = if demand.is_derived {
        demand.period.scale(LEAST_OF_STAGE)
    } else {
        Span::ZERO
    };
    let wanted = reservation(demand.job, demand.period, floor, capacity)?;
    within(wanted, ceiling, capacity)
}

pub(crate) fn within(
    wanted: Reservation,
    ceiling: Option<Bandwidth>,
    capacity: &Capacity,
) -> Option<Reservation> {
    let Some(ceiling) = ceiling.filter(|&ceiling| ceiling < wanted.bandwidth()) else {
        return Some(wanted);
    };
    let runtime = ceiling.runtime_in(wanted.period());
    (runtime >= capacity.shortest_runtime)
        .then(|| Reservation::new(runtime, wanted.deadline(), wanted.period()).ok())?
}

pub(crate) struct Arbiter {
    threads: BySlot<RequestRecord>,
    /// What all requests together want.
    sum: Bandwidth,
    limits: Limits,
    changed: Vec<Slot>,
    /// Not every request was granted whole.
    is_compressed: bool,
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

    pub(crate) const fn look_at_all(&mut self) {
        self.is_stale = true;
    }

    pub(crate) fn changed(&self) -> &[Slot] {
        &self.changed
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = (Slot, &Request)> {
        let all = self.threads.iter();
        all.filter_map(|(slot, thread)| Some((slot, thread.request.as_ref()?)))
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
            let is_trifle = raises && !Hysteresis::is_raise(held, target);
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

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: Capacity = Capacity {
        cpus: 2,
        admissible: Bandwidth::ONE,
        shortest_runtime: Span::from_ns(1024),
        shortest_period: Span::from_us(100),
        longest_period: Span::from_secs(4),
    };

    fn server(runtime: Span, period: Span) -> (Span, Span) {
        let r = reservation(runtime, period, Span::ZERO, &CAPACITY).unwrap();
        (r.runtime() - MARGIN, r.period())
    }

    #[test]
    fn a_period_too_long_is_divided_and_one_too_short_multiplied_at_the_same_bandwidth() {
        let ms = Span::from_ms;
        assert_eq!(server(ms(900), ms(9000)), (ms(300), ms(3000)));
        let us = Span::from_us;
        assert_eq!(server(us(10), us(40)), (us(30), us(120)));
    }
}
