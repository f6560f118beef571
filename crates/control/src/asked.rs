//! What is asked of the loop from outside while it runs: a reservation of just this size, a trial, no
//! longer to keep a thread on the beat, other settings.
//!
//! What was asked for is granted whole or not at all, and never compressed: those whose reservations
//! follow their rhythm give way to it, down to their minima.

use onbeat_decide::supervisor::{Limits, Request};
use onbeat_model::{Actuator, Bandwidth, Instant, Refusal, Reservation, Span, Task, TaskId};

use crate::boosts::BoostWhy;
use crate::controller::{Controller, Due};
use crate::looks::LOOK_AT_FIXED;
use crate::roster::Slot;
use crate::task::state::Enforcement;
use crate::task::{Path, Terms};
use crate::{Settings, Why};

impl<A: Actuator> Controller<A> {
    /// Gives `task` just this reservation, until it is [taken back](Self::take_back). What its rhythm asks
    /// for does not count meanwhile.
    ///
    /// # Errors
    /// See [`Refusal`]; the task then has what it had before.
    pub fn grant(&mut self, task: Task, wanted: Reservation, now: Instant) -> Result<(), Refusal> {
        let known = self.roster.find(task.id).is_some();
        let slot = self.slot_of(task.id, now);
        let Some(thread) = self.thread(slot) else {
            return Err(Refusal::Gone);
        };
        if !known {
            thread.task = task;
            thread.unheard = true;
        }
        let answer = self.admit(slot, wanted, now);
        if answer.is_err() {
            self.dismiss(slot, now);
        }
        answer
    }

    fn admit(&mut self, slot: Slot, wanted: Reservation, now: Instant) -> Result<(), Refusal> {
        self.room_for(slot, wanted)?;
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return Err(Refusal::Gone);
        };
        let task = thread.task.id;
        let fixed_before = thread.fixed;
        if matches!(thread.enforcement, Enforcement::Yielded) {
            return Err(Refusal::TakenOver {
                now: "noticed before".to_owned(),
            });
        }
        // The others make room first, while this one is passed over.
        thread.fixed = Some(wanted);
        self.claim(slot, wanted);
        self.arbitrate_all = true;
        self.settle(now, Some(slot));
        let answer = self.put_in_force(slot, task, wanted);
        let Some(thread) = self.thread(slot) else {
            return Err(Refusal::Gone);
        };
        match answer {
            Ok(()) => {
                let looked_after = std::mem::replace(&mut thread.looked_after, true);
                if !looked_after {
                    self.timers.set(now + LOOK_AT_FIXED, Due::Look(task));
                }
                self.reserved(slot, wanted, Why::AskedFor, now);
                Ok(())
            }
            Err(refusal) => {
                thread.fixed = fixed_before;
                match (fixed_before, &refusal) {
                    (_, Refusal::TakenOver { .. }) => {
                        self.yield_to_other(slot, Some(refusal.clone()), now);
                    }
                    (_, Refusal::Gone) => self.let_go(slot, now),
                    (Some(before), _) => self.claim(slot, before),
                    (None, _) => self.back_to_rhythm(slot),
                }
                Err(refusal)
            }
        }
    }

    /// Whether it fits beside what others asked for and the minima of the rest.
    fn room_for(&self, slot: Slot, wanted: Reservation) -> Result<(), Refusal> {
        let bandwidth = wanted.bandwidth();
        if bandwidth > self.limits.per_task {
            return Err(Refusal::NoRoom {
                wanted: bandwidth,
                advice: format!("no task may have more than {}", self.limits.per_task),
            });
        }
        let others: Bandwidth = (0..self.claims.requests().len())
            .filter(|&place| self.claims.slot(place) != Some(slot))
            .filter_map(|place| Some(self.claims.request(place)?.least))
            .sum();
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

    /// Puts in what is not to be compressed.
    fn claim(&mut self, slot: Slot, wanted: Reservation) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let request = Request {
            task: thread.task.id,
            wanted,
            least: wanted.bandwidth(),
            weight: 1.0,
        };
        match thread.place {
            Some(place) => self.claims.change(place, request),
            None => thread.place = Some(self.claims.put(request, slot)),
        }
    }

    /// From here on its rhythm decides again.
    fn back_to_rhythm(&mut self, slot: Slot) {
        self.drop_claim(slot);
        if let Some(thread) = self.thread(slot) {
            thread.hysteresis.forget();
        }
        self.consider(slot, Some(Why::TakenBack));
    }

    /// Takes back what `task` was [granted](Self::grant). If it is kept on the beat as well, it gets what its
    /// rhythm asks for instead.
    pub fn take_back(&mut self, task: TaskId, now: Instant) {
        let Some(slot) = self.roster.find(task) else {
            return;
        };
        let Some(thread) = self.thread(slot) else {
            return;
        };
        if thread.fixed.take().is_none() {
            return;
        }
        self.back_to_rhythm(slot);
        if self
            .thread(slot)
            .is_some_and(|thread| thread.place.is_none())
        {
            self.withdraw(slot, Why::TakenBack, now);
        }
        self.dismiss(slot, now);
    }

    /// No longer keeps `task` on the beat; what it was [granted](Self::grant), it keeps. The sensor must not
    /// tell of it any more.
    pub fn forget(&mut self, task: TaskId, now: Instant) {
        // The sensor may not have told of it yet.
        if let Some(pipelines) = &mut self.pipelines {
            pipelines.forget(task.tid);
        }
        let Some(slot) = self.roster.find(task) else {
            return;
        };
        self.hear_of(slot, now);
        if let Some(thread) = self.thread(slot) {
            thread.finish_job();
            thread.stop_listening();
        }
        self.withdraw(slot, Why::Untracked, now);
        self.unprotect(slot, BoostWhy::Untracked, now);
        self.end_boost(slot, BoostWhy::Untracked, now);
        self.dismiss(slot, now);
        // What settles yet may be tracked again, and then is nobody's partner.
        if let Some(thread) = self.roster.find(task).and_then(|slot| self.thread(slot)) {
            thread.path = Path::default();
        }
    }

    /// Gives `task` a reservation of this `share` of a CPU in each `period` on trial, so that it can show its
    /// rhythm; if it shows none, it is given back.
    pub fn try_out(&mut self, task: Task, share: Bandwidth, period: Span, now: Instant) {
        let slot = self.slot_of(task.id, now);
        let Some(thread) = self.thread(slot) else {
            return;
        };
        thread.task = task;
        if thread.try_out(Terms { share, period }, now) {
            self.put_on_trial(slot, task.id, Why::WantsPriority, now);
        }
    }

    /// From now on works by other settings. What is in force stays until there is a reason to change it.
    pub fn set_settings(&mut self, settings: Settings) {
        self.limits = limits(&settings, &self.capacity);
        self.settings = settings;
        for thread in self.threads.iter_mut().flatten() {
            thread.treatment = None;
        }
        self.arbitrate_all = true;
    }

    /// Lets go of a thread that nobody tells of, once it holds nothing any more and has back what it had: an
    /// actuator that is told of its end would give it nothing back.
    pub(crate) fn dismiss(&mut self, slot: Slot, now: Instant) {
        let done = self
            .thread(slot)
            .is_some_and(|t| t.unheard && t.fixed.is_none() && t.enforcement.is_clean());
        if done {
            self.end(slot, now);
        }
    }
}

/// What the supervisor may hand out.
pub(crate) fn limits(settings: &Settings, capacity: &onbeat_model::Capacity) -> Limits {
    let cap = Bandwidth::from_cpus(f64::from(capacity.cpus) * settings.total);
    Limits {
        total: cap.min(capacity.admissible),
        per_task: settings.per_task,
        shortest_runtime: capacity.shortest_runtime,
    }
}
