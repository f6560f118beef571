//! Requests from outside while the loop runs: a reservation of a given size and its end, a
//! probation, the end of interest in a thread, a look at the capacity, other settings.
//!
//! A requested reservation is granted whole or not at all, and never compressed. Reservations that
//! follow a rhythm give way to it, down to their minima.

use onbeat_decide::supervisor::Limits;
use onbeat_model::{Actuator, Bandwidth, Instant, Refusal, Reservation, Span, Task, TaskId};

use crate::estimation::probation::Terms;
use crate::pipeline::role::Path;
use crate::protection::boost::BoostWhy;
use crate::run_loop::{Controller, LOOK_AT_FIXED};
use crate::task::state::Enforcement;
use crate::task::table::Slot;
use crate::timer::TimerEvent;
use crate::{Settings, Why};

impl<A: Actuator> Controller<A> {
    /// Gives `task` this reservation, until it is [taken back](Self::take_back). Its rhythm does
    /// not count meanwhile.
    ///
    /// # Errors
    /// See [`Refusal`]; the task then keeps its former reservation.
    pub fn grant(&mut self, task: Task, wanted: Reservation, now: Instant) -> Result<(), Refusal> {
        let known = self.tasks.find(task.id).is_some();
        let slot = self.slot_of(task.id, now);
        let Some(thread) = self.tasks.get_mut(slot) else {
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
        self.arbiter.admits(slot, wanted)?;
        let Some(thread) = self.tasks.get_mut(slot) else {
            return Err(Refusal::Gone);
        };
        let (task, fixed_before) = (thread.task.id, thread.fixed);
        if matches!(thread.enforcement, Enforcement::Yielded) {
            return Err(Refusal::TakenOver {
                now: "noticed before".to_owned(),
            });
        }
        // The others make room first, so this one is left out of the turn.
        thread.fixed = Some(wanted);
        self.arbiter.put_fixed(&mut self.tasks, slot, wanted);
        self.arbiter.look_at_all();
        self.settle(now, Some(slot));
        let (enforcer, books) = self.enforcing();
        let answer = enforcer.put_in_force(&books, slot, wanted);
        let Some(thread) = self.tasks.get_mut(slot) else {
            return Err(Refusal::Gone);
        };
        match answer {
            Ok(()) => {
                let looked_after = std::mem::replace(&mut thread.looked_after, true);
                if !looked_after {
                    let event = TimerEvent::Look(task);
                    self.timers.set(now + LOOK_AT_FIXED, event);
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
                    (Some(before), _) => self.arbiter.put_fixed(&mut self.tasks, slot, before),
                    (None, _) => self.back_to_rhythm(slot),
                }
                Err(refusal)
            }
        }
    }

    /// Has the task's rhythm decide again.
    fn back_to_rhythm(&mut self, slot: Slot) {
        self.withdraw_request(slot);
        if let Some(thread) = self.tasks.get_mut(slot) {
            thread.hysteresis.forget();
        }
        self.consider(slot, Some(Why::TakenBack));
    }

    /// Takes back the reservation that `task` was [granted](Self::grant). If the task is tracked,
    /// it gets the reservation for its rhythm instead.
    pub fn take_back(&mut self, task: TaskId, now: Instant) {
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        if thread.fixed.take().is_none() {
            return;
        }
        self.back_to_rhythm(slot);
        if self
            .tasks
            .get_mut(slot)
            .is_some_and(|thread| thread.place.is_none())
        {
            self.withdraw(slot, Why::TakenBack, now);
        }
        self.dismiss(slot, now);
    }

    /// Ends the tracking of `task`, which keeps a reservation that it was [granted](Self::grant).
    /// The sensor must not tell of it any more.
    pub fn forget(&mut self, task: TaskId, now: Instant) {
        // The sensor may tell of it later.
        if let Some(pipelines) = &mut self.pipelines {
            pipelines.forget(task.tid);
        }
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        self.hear_of(slot, now);
        if let Some(thread) = self.tasks.get_mut(slot) {
            thread.finish_job();
            thread.stop_listening();
        }
        self.withdraw(slot, Why::Untracked, now);
        self.unprotect(slot, BoostWhy::Untracked, now);
        self.end_boost(slot, BoostWhy::Untracked, now);
        self.dismiss(slot, now);
        // What settles yet may be tracked again, and then is nobody's partner.
        if let Some(thread) = self
            .tasks
            .find(task)
            .and_then(|slot| self.tasks.get_mut(slot))
        {
            thread.path = Path::default();
        }
    }

    /// Gives `task` a reservation of this `share` of a CPU in each `period` on trial, so that it
    /// can show its rhythm; if it shows none, it is given back.
    pub fn try_out(&mut self, task: Task, share: Bandwidth, period: Span, now: Instant) {
        let slot = self.slot_of(task.id, now);
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        thread.task = task;
        if thread.try_out(Terms { share, period }, now) {
            self.put_on_probation(slot, task.id, Why::WantsPriority, now);
        }
    }

    /// Reads the capacity again: CPUs may have come or gone.
    pub fn measure(&mut self) {
        if self.enforcer.measure() {
            let limits = limits(&self.settings, self.enforcer.capacity());
            self.arbiter.set_limits(limits);
        }
    }

    /// Takes over other settings. Reservations stay as they are until there is a reason to change
    /// them.
    pub fn set_settings(&mut self, settings: Settings) {
        let limits = limits(&settings, self.enforcer.capacity());
        self.arbiter.set_limits(limits);
        self.settings = settings;
        for (_, thread) in self.tasks.iter_mut() {
            thread.treatment = None;
        }
    }

    /// Forgets an untracked thread once it has its former scheduling back. The actuator must not be
    /// told of its end, because it would then give nothing back.
    pub(crate) fn dismiss(&mut self, slot: Slot, now: Instant) {
        let done = self
            .tasks
            .get_mut(slot)
            .is_some_and(|t| t.unheard && t.fixed.is_none() && t.enforcement.is_clean());
        if done {
            self.end(slot, now);
        }
    }
}

/// The bandwidth that the supervisor may hand out.
pub(crate) fn limits(settings: &Settings, capacity: &onbeat_model::Capacity) -> Limits {
    let cap = Bandwidth::from_cpus(f64::from(capacity.cpus) * settings.total);
    Limits {
        total: cap.min(capacity.admissible),
        per_task: settings.per_task,
        shortest_runtime: capacity.shortest_runtime,
    }
}
