//! Puts adjustments in force through the actuator, and handles its refusals.
//!
//! During a turn no other folder calls the actuator. The effects on requests, timers and the log go
//! into [`Books`]. The [`Effects`] on the rest of the loop are returned.

mod admission;
mod partition;
mod release;

use onbeat_model::{
    Actuator, Bandwidth, Boost, Capacity, Instant, Refusal, Reservation, Span, Speed, Standing,
    TaskId,
};

use crate::Why;
use crate::allocation::arbiter::{Adjustment, Arbiter};
use crate::allocation::bandwidth;
use crate::report::decision::{Log, What};
use crate::task::state::Enforcement;
use crate::task::table::{Slot, TaskTable};
use crate::timer::{TimerEvent, Timers};
use admission::Admission;
use partition::Partitions;

const FIRST_RETRY: Span = Span::from_secs(1);
const LONGEST_RETRY: Span = Span::from_secs(30);

/// Owns the actuator and the sum of the reservations in force.
pub(crate) struct Enforcer<A> {
    actuator: A,
    capacity: Capacity,
    in_force: Bandwidth,
    admission: Admission,
    partitions: Partitions,
}

/// The parts of the loop that an enforcement writes to.
pub(crate) struct Books<'a> {
    pub(crate) tasks: &'a mut TaskTable,
    pub(crate) arbiter: &'a mut Arbiter,
    pub(crate) timers: &'a mut Timers<TimerEvent>,
    pub(crate) log: &'a mut Log,
    /// The factor by which the scheduler counts runtimes.
    pub(crate) scale: Option<f64>,
}

/// The effects of an enforcement on the rest of the loop.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub(crate) struct Effects {
    /// The actuator was asked for a reservation, which may have ended a boost.
    pub(crate) is_asked: bool,
    /// The thread's request was taken back.
    pub(crate) is_withdrawn: bool,
    /// An untracked thread without a reservation may be forgotten.
    pub(crate) may_end: bool,
}

impl Effects {
    const fn and(self, other: Self) -> Self {
        Self {
            is_asked: self.is_asked || other.is_asked,
            is_withdrawn: self.is_withdrawn || other.is_withdrawn,
            may_end: self.may_end || other.may_end,
        }
    }
}

impl Books<'_> {
    /// Takes the thread's request back.
    fn withdraw(&mut self, slot: Slot) -> Effects {
        self.arbiter.withdraw(self.tasks, slot);
        Effects {
            is_withdrawn: true,
            ..Effects::default()
        }
    }
}

impl<A: Actuator> Enforcer<A> {
    /// Reservations are for one of `rooms` each, if there are any.
    pub(crate) fn new(actuator: A, rooms: Vec<Bandwidth>) -> Self {
        Self {
            capacity: actuator.capacity(),
            actuator,
            in_force: Bandwidth::ZERO,
            admission: Admission::default(),
            partitions: Partitions::new(rooms),
        }
    }

    pub(crate) const fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// Reads the capacity again: CPUs may have come or gone. Returns whether it has changed.
    pub(crate) fn measure(&mut self) -> bool {
        self.actuator.measure();
        let before = std::mem::replace(&mut self.capacity, self.actuator.capacity());
        before != self.capacity
    }

    /// The sum of all reservations in force.
    pub(crate) const fn in_force(&self) -> Bandwidth {
        self.in_force
    }

    pub(crate) const fn actuator(&mut self) -> &mut A {
        &mut self.actuator
    }

    pub(crate) fn into_actuator(self) -> A {
        self.actuator
    }

    pub(crate) fn boost(&mut self, task: TaskId, boost: Option<Boost>) -> Result<(), Refusal> {
        self.actuator.boost(task, boost)
    }

    pub(crate) fn set_speed(&mut self, speed: Speed) -> Result<(), Refusal> {
        self.actuator.set_speed(speed)
    }

    pub(crate) fn release_speed(&mut self) -> Result<(), Refusal> {
        self.actuator.release_speed()
    }

    /// The thread is gone.
    pub(crate) fn ended(&mut self, books: &mut Books<'_>, slot: Slot, now: Instant) {
        self.change(books, slot, now, Enforcement::released);
        if let Some(thread) = books.tasks.get(slot) {
            self.actuator.ended(thread.task.id);
        }
    }

    /// Puts an adjustment in force.
    pub(crate) fn apply(
        &mut self,
        books: &mut Books<'_>,
        adjustment: Adjustment,
        now: Instant,
    ) -> Effects {
        let Adjustment {
            slot, target, why, ..
        } = adjustment;
        let Some(thread) = books.tasks.get(slot) else {
            return Effects::default();
        };
        if thread.held() == target || !thread.enforcement.is_open() {
            return Effects::default();
        }
        let Some(target) = target else {
            return self.release(books, slot, why, now);
        };
        let effects = match self.put_in_force(books, slot, target) {
            Ok(()) => {
                self.reserved(books, slot, target, why, now);
                Effects::default()
            }
            Err(refusal) => self.refused(books, slot, target, (why, refusal), now),
        };
        Effects {
            is_asked: true,
            ..effects
        }
    }

    /// Notes that `target` is in force for the thread.
    pub(crate) fn reserved(
        &mut self,
        books: &mut Books<'_>,
        slot: Slot,
        target: Reservation,
        why: Why,
        now: Instant,
    ) {
        let Some(thread) = books.tasks.get_mut(slot) else {
            return;
        };
        let (task, old) = (thread.task, thread.held());
        thread.refusals = 0;
        thread.figures.changes += 1;
        let what = if old.is_some() {
            What::Changed
        } else {
            What::Reserved
        };
        self.change(books, slot, now, |state| state.reserve(target));
        let change = (old, Some(target));
        books.log.enter(books.tasks, task, (what, why), change, now);
    }

    fn refused(
        &mut self,
        books: &mut Books<'_>,
        slot: Slot,
        target: Reservation,
        (why, refusal): (Why, Refusal),
        now: Instant,
    ) -> Effects {
        let Some(thread) = books.tasks.get_mut(slot) else {
            return Effects::default();
        };
        let (task, held) = (thread.task, thread.held());
        let change = (held, Some(target));
        match refusal {
            Refusal::Settling { until } => {
                thread.enforcement.back_off(until, Some(why));
                books.timers.set(until, TimerEvent::Retry(task.id));
                Effects::default()
            }
            Refusal::NoRoom { .. } => {
                if self.admission.tries == 0 {
                    let told = (What::Refused, Why::Refused(refusal));
                    books.log.enter(books.tasks, task, told, change, now);
                }
                self.step_down(books, slot, target, why, now);
                Effects::default()
            }
            Refusal::OverQuota { left, .. } => {
                if thread.ceiling.is_none() {
                    let told = (What::Refused, Why::Refused(refusal));
                    books.log.enter(books.tasks, task, told, change, now);
                }
                self.cap(books, slot, (target, left), why, now)
            }
            Refusal::TakenOver { .. } => self.yield_to_other(books, slot, Some(refusal), now),
            Refusal::Gone => self.let_go(books, slot, now),
            _ => {
                let first = thread.refusals == 0;
                let until = now + FIRST_RETRY.doubled(thread.refusals, LONGEST_RETRY);
                thread.refusals += 1;
                thread.enforcement.back_off(until, None);
                let effects = if held.is_none() {
                    books.withdraw(slot)
                } else {
                    Effects::default()
                };
                books.timers.set(until, TimerEvent::Retry(task.id));
                if first {
                    let told = (What::Refused, Why::Refused(refusal));
                    books.log.enter(books.tasks, task, told, change, now);
                }
                effects
            }
        }
    }

    /// Notes that the thread is gone. The sensor tells of its end later.
    pub(crate) fn let_go(&mut self, books: &mut Books<'_>, slot: Slot, now: Instant) -> Effects {
        let effects = books.withdraw(slot);
        self.change(books, slot, now, Enforcement::gone);
        Effects {
            may_end: true,
            ..effects
        }
    }

    /// Yields to another program that changed the thread.
    pub(crate) fn yield_to_other(
        &mut self,
        books: &mut Books<'_>,
        slot: Slot,
        refusal: Option<Refusal>,
        now: Instant,
    ) -> Effects {
        let effects = books.withdraw(slot);
        let Some(thread) = books.tasks.get(slot) else {
            return effects;
        };
        let (task, old) = (thread.task, thread.held());
        self.change(books, slot, now, Enforcement::yield_to_other);
        let refusal = refusal.unwrap_or(Refusal::TakenOver {
            now: "noticed by itself".to_owned(),
        });
        let told = (What::TakenOver, Why::Refused(refusal));
        books.log.enter(books.tasks, task, told, (old, None), now);
        effects
    }

    /// Checks whether the thread still has its reservation: the kernel may have left it without
    /// effect, and an administrator may have changed it. `runs` tells whether the thread runs now.
    pub(crate) fn reconcile(
        &mut self,
        books: &mut Books<'_>,
        slot: Slot,
        (task, runs): (TaskId, bool),
        now: Instant,
    ) -> Effects {
        let standing = if runs {
            self.actuator.standing_of_running(task)
        } else {
            self.actuator.standing(task)
        };
        match standing {
            Standing::Held(_) => Effects::default(),
            Standing::TakenOver => self.yield_to_other(books, slot, None, now),
            Standing::Gone => self.let_go(books, slot, now),
            Standing::Own => {
                self.change(books, slot, now, Enforcement::released);
                books.arbiter.ask(books.tasks, slot, Why::GivenBackByKernel);
                Effects::default()
            }
        }
    }

    /// Accounts for a change of the thread's reservation at `now`.
    fn change(
        &mut self,
        books: &mut Books<'_>,
        slot: Slot,
        now: Instant,
        change: impl FnOnce(&mut Enforcement),
    ) {
        let Some(thread) = books.tasks.get_mut(slot) else {
            return;
        };
        let before = thread.held();
        change(&mut thread.enforcement);
        let held = thread.held();
        self.in_force = self.in_force - bandwidth(before) + bandwidth(held);
        thread.figures.holds(held.map(|held| held.bandwidth()), now);
    }

    /// Reserves `target` for the thread, on a CPU that has room for its process.
    ///
    /// # Errors
    /// See [`Refusal`]; the thread then keeps its former reservation.
    pub(crate) fn put_in_force(
        &mut self,
        books: &Books<'_>,
        slot: Slot,
        target: Reservation,
    ) -> Result<(), Refusal> {
        let Some(thread) = books.tasks.get(slot) else {
            return Err(Refusal::Gone);
        };
        let (scale, capacity) = (books.scale, &self.capacity);
        let counted = |reservation| as_counted(reservation, scale, capacity);
        let mover = |process, partition| self.actuator.place(process, partition);
        self.partitions
            .make_room(books.tasks, (slot, counted(target)), counted, mover)?;
        self.actuator.reserve(thread.task.id, counted(target))
    }
}

/// The reservation as the scheduler counts it: `target` is in time at the speed at which budgets
/// must suffice, and the scheduler's own time may be that at the highest.
fn as_counted(target: Reservation, scale: Option<f64>, capacity: &Capacity) -> Reservation {
    let Some(scale) = scale else {
        return target;
    };
    let runtime = target.runtime().scale(scale).max(capacity.shortest_runtime);
    Reservation::new(runtime, target.deadline(), target.period()).unwrap_or(target)
}
