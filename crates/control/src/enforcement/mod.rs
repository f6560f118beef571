//! Puts adjustments in force through the actuator, and handles its refusals.
//!
//! During a turn no other folder calls the actuator. The effects on requests, timers and the log go
//! into [`Context`]. The [`Effects`] on the rest of the loop are returned.

mod admission;
mod release;
mod state;

use onbeat_model::{
    Actuator, Bandwidth, Boost, Capacity, Instant, Refusal, Reservation, Span, Speed, Standing,
    Task, TaskId,
};

use crate::Why;
use crate::allocation::arbiter::{Adjustment, Arbiter};
use crate::allocation::bandwidth;
use crate::report::decision::{DecisionLog, Entry, What};
use crate::slots::{BySlot, Slot};
use crate::task::table::TaskTable;
use crate::timer::{TimerEvent, TimerQueue};
use admission::Admission;
use state::Enforcement;

/// The pause after a refusal, which doubles with each further one: other programs hold
/// reservations for seconds to hours.
const FIRST_RETRY: Span = Span::from_secs(1);
pub(crate) const LONGEST_RETRY: Span = Span::from_secs(30);

/// Owns the actuator and the sum of the reservations in force.
pub(crate) struct Enforcer<A> {
    actuator: A,
    capacity: Capacity,
    servers: BySlot<EnforcedThread>,
    in_force: Bandwidth,
    admission: Admission,
}

/// The reservation in force for a thread, and the state of its enforcement.
#[derive(Debug, Default)]
pub(crate) struct EnforcedThread {
    state: Enforcement,
    refusals: u32,
    /// The most that the thread's owner may have for it, for now.
    ceiling: Option<Bandwidth>,
    /// A requested reservation, whatever the thread's rhythm.
    fixed: Option<Reservation>,
    checked: Instant,
}

impl EnforcedThread {
    pub(crate) const fn held(&self) -> Option<Reservation> {
        self.state.held()
    }

    pub(crate) const fn fixed(&self) -> Option<Reservation> {
        self.fixed
    }

    pub(crate) const fn ceiling(&self) -> Option<Bandwidth> {
        self.ceiling
    }

    pub(crate) const fn state(&self) -> &Enforcement {
        &self.state
    }
}

/// The parts of the loop that an enforcement writes to.
pub(crate) struct Context<'a> {
    pub(crate) tasks: &'a mut TaskTable,
    pub(crate) arbiter: &'a mut Arbiter,
    pub(crate) timers: &'a mut TimerQueue,
    pub(crate) log: &'a mut DecisionLog,
    /// The factor by which the scheduler counts runtimes.
    pub(crate) scale: Option<f64>,
    pub(crate) now: Instant,
}

/// The effects of an enforcement on the rest of the loop.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub(crate) struct Effects {
    /// The actuator was asked for a reservation, which may have ended a boost.
    pub(crate) is_asked: bool,
    /// An untracked thread without a reservation may be forgotten.
    pub(crate) may_end: bool,
}

impl Context<'_> {
    fn task(&self, slot: Slot) -> Option<Task> {
        self.tasks.get(slot).map(|thread| thread.task)
    }

    fn enter(
        &mut self,
        slot: Slot,
        (what, why): (What, Why),
        (old, new): (Option<Reservation>, Option<Reservation>),
    ) {
        if let Some(thread) = self.tasks.get_mut(slot) {
            let entry = Entry {
                at: self.now,
                task: thread.task,
                what,
                why,
                old,
                new,
            };
            self.log.enter(&mut thread.account, entry);
        }
    }
}

impl<A: Actuator> Enforcer<A> {
    pub(crate) fn new(actuator: A) -> Self {
        Self {
            capacity: actuator.capacity(),
            actuator,
            servers: BySlot::default(),
            in_force: Bandwidth::ZERO,
            admission: Admission::default(),
        }
    }

    pub(crate) fn enter(&mut self, slot: Slot, at: Instant) {
        *self.servers.get_mut(slot) = EnforcedThread {
            checked: at,
            ..EnforcedThread::default()
        };
    }

    pub(crate) fn forget(&mut self, slot: Slot) {
        self.servers.take(slot);
    }

    pub(crate) fn server(&self, slot: Slot) -> &EnforcedThread {
        self.servers.get(slot)
    }

    pub(crate) fn held(&self, slot: Slot) -> Option<Reservation> {
        self.servers.get(slot).held()
    }

    /// The thread is to have this reservation, whatever its rhythm. Returns the former one.
    pub(crate) fn fix(&mut self, slot: Slot, wanted: Option<Reservation>) -> Option<Reservation> {
        std::mem::replace(&mut self.servers.get_mut(slot).fixed, wanted)
    }

    /// Whether the thread's back-off is over at `now`, and for which reason the actuator is to be
    /// asked then.
    pub(crate) fn retry(&mut self, slot: Slot, now: Instant) -> Option<Option<Why>> {
        self.servers.get_mut(slot).state.retry(now)
    }

    /// Forgets the thread's ceiling. True if its request may be higher now.
    pub(crate) fn lift_ceiling(&mut self, slot: Slot) -> bool {
        let server = self.servers.get_mut(slot);
        server.ceiling.take().is_some() && server.state.is_open()
    }

    pub(crate) fn take_check_due(&mut self, slot: Slot, every: Span, now: Instant) -> bool {
        let server = self.servers.get_mut(slot);
        let due = server.held().is_some() && now.since(server.checked) >= every;
        if due {
            server.checked = now;
        }
        due
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

    pub(crate) fn ended(&mut self, context: &mut Context<'_>, slot: Slot) {
        self.change(context, slot, Enforcement::released);
        if let Some(thread) = context.tasks.get(slot) {
            self.actuator.ended(thread.task.id);
        }
    }

    pub(crate) fn apply(&mut self, context: &mut Context<'_>, adjustment: Adjustment) -> Effects {
        let Adjustment { slot, target, why } = adjustment;
        let server = self.servers.get(slot);
        if server.held() == target || !server.state.is_open() {
            return Effects::default();
        }
        let Some(target) = target else {
            return self.release(context, slot, why);
        };
        let effects = match self.put_in_force(context, slot, target) {
            Ok(()) => {
                self.reserved(context, slot, target, why);
                Effects::default()
            }
            Err(refusal) => self.refused(context, slot, target, (why, refusal)),
        };
        Effects {
            is_asked: true,
            ..effects
        }
    }

    /// Notes that `target` is in force for the thread.
    pub(crate) fn reserved(
        &mut self,
        context: &mut Context<'_>,
        slot: Slot,
        target: Reservation,
        why: Why,
    ) {
        let server = self.servers.get_mut(slot);
        let old = server.held();
        server.refusals = 0;
        if let Some(thread) = context.tasks.get_mut(slot) {
            thread.account.holding.changes += 1;
        }
        let what = if old.is_some() {
            What::Changed
        } else {
            What::Reserved
        };
        self.change(context, slot, |state| state.reserve(target));
        context.enter(slot, (what, why), (old, Some(target)));
    }

    fn refused(
        &mut self,
        context: &mut Context<'_>,
        slot: Slot,
        target: Reservation,
        (why, refusal): (Why, Refusal),
    ) -> Effects {
        let Some(task) = context.task(slot) else {
            return Effects::default();
        };
        let server = self.servers.get_mut(slot);
        let held = server.held();
        let change = (held, Some(target));
        match refusal {
            Refusal::Settling { until } => {
                server.state.back_off(until, Some(why));
                context.timers.set(until, TimerEvent::Retry(task.id));
                Effects::default()
            }
            Refusal::NoRoom { .. } => {
                if self.admission.tries == 0 {
                    let decision = (What::Refused, Why::Refused(refusal));
                    context.enter(slot, decision, change);
                }
                self.step_down(context, slot, target, why);
                Effects::default()
            }
            Refusal::OverQuota { left, .. } => {
                if server.ceiling.is_none() {
                    let decision = (What::Refused, Why::Refused(refusal));
                    context.enter(slot, decision, change);
                }
                self.cap(context, slot, (target, left), why)
            }
            Refusal::TakenOver { .. } => self.yield_to_other(context, slot, Some(refusal)),
            Refusal::Gone => self.let_go(context, slot),
            _ => {
                let first = server.refusals == 0;
                let until = context.now + FIRST_RETRY.doubled(server.refusals, LONGEST_RETRY);
                server.refusals += 1;
                server.state.back_off(until, None);
                if held.is_none() {
                    context.arbiter.withdraw(slot);
                }
                context.timers.set(until, TimerEvent::Retry(task.id));
                if first {
                    let decision = (What::Refused, Why::Refused(refusal));
                    context.enter(slot, decision, change);
                }
                Effects::default()
            }
        }
    }

    /// Notes that the thread is gone. The sensor tells of its end later.
    pub(crate) fn let_go(&mut self, context: &mut Context<'_>, slot: Slot) -> Effects {
        context.arbiter.withdraw(slot);
        self.change(context, slot, Enforcement::gone);
        Effects {
            may_end: true,
            ..Effects::default()
        }
    }

    pub(crate) fn yield_to_other(
        &mut self,
        context: &mut Context<'_>,
        slot: Slot,
        refusal: Option<Refusal>,
    ) -> Effects {
        context.arbiter.withdraw(slot);
        let old = self.held(slot);
        self.change(context, slot, Enforcement::yield_to_other);
        let refusal = refusal.unwrap_or(Refusal::TakenOver {
            now: "it no longer has its reservation".to_owned(),
        });
        let decision = (What::TakenOver, Why::Refused(refusal));
        context.enter(slot, decision, (old, None));
        Effects::default()
    }

    /// Checks whether the thread still has its reservation: the kernel may have left it without
    /// effect, and an administrator may have changed it. `runs` tells whether the thread runs now.
    pub(crate) fn reconcile(
        &mut self,
        context: &mut Context<'_>,
        slot: Slot,
        (task, runs): (TaskId, bool),
    ) -> Effects {
        let standing = if runs {
            self.actuator.standing_of_running(task)
        } else {
            self.actuator.standing(task)
        };
        match standing {
            Standing::Held(_) => Effects::default(),
            Standing::TakenOver => self.yield_to_other(context, slot, None),
            Standing::Gone => self.let_go(context, slot),
            Standing::Own => {
                self.change(context, slot, Enforcement::released);
                context.arbiter.ask(slot, Why::GivenBackByKernel);
                Effects::default()
            }
        }
    }

    fn change(
        &mut self,
        context: &mut Context<'_>,
        slot: Slot,
        change: impl FnOnce(&mut Enforcement),
    ) {
        let server = self.servers.get_mut(slot);
        let before = server.held();
        change(&mut server.state);
        let held = server.held();
        self.in_force = self.in_force - bandwidth(before) + bandwidth(held);
        if let Some(thread) = context.tasks.get_mut(slot) {
            let held = held.map(|held| held.bandwidth());
            thread.account.holding.holds(held, context.now);
        }
    }

    /// Refused, the thread keeps its former reservation.
    pub(crate) fn put_in_force(
        &mut self,
        context: &Context<'_>,
        slot: Slot,
        target: Reservation,
    ) -> Result<(), Refusal> {
        let Some(task) = context.task(slot) else {
            return Err(Refusal::Gone);
        };
        let counted = as_counted(target, context.scale, &self.capacity);
        self.actuator.reserve(task.id, counted)
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
