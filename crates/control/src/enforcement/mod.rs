//! Puts adjustments in force through the actuator, and handles its refusals.
//!
//! During a turn no other folder calls the actuator. [`Enforcing`] has what else an enforcement
//! changes.

mod admission;

use onbeat_model::{
    Actuator, Bandwidth, Boost, Capacity, Instant, Refusal, Reservation, Span, Speed, Standing,
    Task, TaskId,
};

use crate::Why;
use crate::allocation::bandwidth;
use crate::allocation::{Adjustment, Arbiter};
use crate::report::decision::{DecisionLog, Entry, What};
use crate::task::{BySlot, Slot, TaskTable};
use crate::timer::{TimerEvent, TimerQueue};
use admission::Admission;

/// The pause after a refusal, which doubles with each further one: other programs hold
/// reservations for seconds to hours.
const FIRST_RETRY: Span = Span::from_secs(1);
pub(crate) const LONGEST_RETRY: Span = Span::from_secs(30);

pub(crate) struct Enforcer<A> {
    actuator: A,
    capacity: Capacity,
    servers: BySlot<EnforcedThread>,
    in_force: Bandwidth,
    admission: Admission,
}

#[derive(Debug, Default)]
pub(crate) struct EnforcedThread {
    pub(crate) state: Enforcement,
    refusals: u32,
    /// The most that the thread's owner may have for it, for now.
    pub(crate) ceiling: Option<Bandwidth>,
    /// A requested reservation, whatever the thread's rhythm.
    pub(crate) fixed: Option<Reservation>,
    checked: Instant,
}

impl EnforcedThread {
    pub(crate) const fn held(&self) -> Option<Reservation> {
        self.state.held()
    }
}

pub(crate) struct Enforcing<'a, A> {
    pub(crate) enforcer: &'a mut Enforcer<A>,
    pub(crate) tasks: &'a mut TaskTable,
    pub(crate) arbiter: &'a mut Arbiter,
    pub(crate) timers: &'a mut TimerQueue,
    pub(crate) log: &'a mut DecisionLog,
    /// The factor by which the scheduler counts runtimes.
    pub(crate) scale: Option<f64>,
    pub(crate) now: Instant,
    /// The actuator was asked for a reservation, which may have ended a boost.
    pub(crate) is_asked: bool,
    /// An untracked thread without a reservation may be forgotten.
    pub(crate) may_end: bool,
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
}

impl<A: Actuator> Enforcing<'_, A> {
    fn task(&self, slot: Slot) -> Option<Task> {
        self.tasks.get(slot).map(|thread| thread.task)
    }

    pub(crate) fn enter(
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

    pub(crate) fn ended(&mut self, slot: Slot) {
        self.change(slot, Enforcement::released);
        if let Some(thread) = self.tasks.get(slot) {
            self.enforcer.actuator.ended(thread.task.id);
        }
    }

    pub(crate) fn apply(&mut self, adjustment: Adjustment) {
        let Adjustment { slot, target, why } = adjustment;
        let server = self.enforcer.servers.get(slot);
        if server.held() == target || !server.state.is_open() {
            return;
        }
        let Some(target) = target else {
            return self.release(slot, why);
        };
        self.is_asked = true;
        match self.put_in_force(slot, target) {
            Ok(()) => self.reserved(slot, target, why),
            Err(refusal) => self.refused(slot, target, (why, refusal)),
        }
    }

    pub(crate) fn reserved(&mut self, slot: Slot, target: Reservation, why: Why) {
        let server = self.enforcer.servers.get_mut(slot);
        let old = server.held();
        server.refusals = 0;
        if let Some(thread) = self.tasks.get_mut(slot) {
            thread.account.holding.changes += 1;
        }
        let what = if old.is_some() {
            What::Changed
        } else {
            What::Reserved
        };
        self.change(slot, |state| state.reserve(target));
        self.enter(slot, (what, why), (old, Some(target)));
    }

    fn refused(&mut self, slot: Slot, target: Reservation, (why, refusal): (Why, Refusal)) {
        let Some(task) = self.task(slot) else {
            return;
        };
        let server = self.enforcer.servers.get_mut(slot);
        let held = server.held();
        let is_news = match refusal {
            Refusal::Settling { .. } | Refusal::TakenOver { .. } | Refusal::Gone => false,
            Refusal::NoRoom { .. } => self.enforcer.admission.tries == 0,
            Refusal::OverQuota { .. } => server.ceiling.is_none(),
            _ => server.refusals == 0,
        };
        if is_news {
            let decision = (What::Refused, Why::Refused(refusal.clone()));
            self.enter(slot, decision, (held, Some(target)));
        }
        let server = self.enforcer.servers.get_mut(slot);
        match refusal {
            Refusal::Settling { until } => {
                server.state.back_off(until, Some(why));
                self.timers.set(until, TimerEvent::Retry(task.id));
            }
            Refusal::NoRoom { .. } => self.step_down(slot, target, why),
            Refusal::OverQuota { left, .. } => self.cap(slot, (target, left), why),
            Refusal::TakenOver { .. } => self.yield_to_other(slot, Some(refusal)),
            Refusal::Gone => self.let_go(slot),
            _ => {
                let until = self.now + FIRST_RETRY.doubled(server.refusals, LONGEST_RETRY);
                server.refusals += 1;
                server.state.back_off(until, None);
                if held.is_none() {
                    self.arbiter.withdraw(slot);
                }
                self.timers.set(until, TimerEvent::Retry(task.id));
            }
        }
    }

    /// Notes that the thread is gone. The sensor tells of its end later.
    pub(crate) fn let_go(&mut self, slot: Slot) {
        self.arbiter.withdraw(slot);
        self.change(slot, Enforcement::gone);
        self.may_end = true;
    }

    pub(crate) fn withdraw(&mut self, slot: Slot, why: Why) {
        let server = self.enforcer.servers.get(slot);
        if server.fixed.is_some() && why != Why::Finished {
            return;
        }
        let is_held = server.held().is_some();
        self.arbiter.withdraw(slot);
        if is_held {
            self.release(slot, why);
        }
    }

    /// Gives a thread its former scheduling back. One that must settle, or that fails, is in a
    /// back-off with what it holds, and is released again when that is over, until it succeeds or
    /// the thread is gone or taken over.
    pub(crate) fn release(&mut self, slot: Slot, why: Why) {
        let Some(task) = self.task(slot) else {
            return;
        };
        self.arbiter.forget_changes(slot);
        let server = self.enforcer.servers.get_mut(slot);
        let (old, refusals) = (server.held(), server.refusals);
        let until = match self.enforcer.actuator.release(task.id) {
            Ok(()) | Err(Refusal::Gone) => {
                self.may_end = true;
                return self.gave_back(slot, why, old);
            }
            // The actuator does it when it is dropped, unless it hears that the thread has ended.
            Err(Refusal::Settling { .. }) if why == Why::Finished => {
                return self.gave_back(slot, why, old);
            }
            Err(refusal @ Refusal::TakenOver { .. }) => {
                self.may_end = true;
                return self.yield_to_other(slot, Some(refusal));
            }
            Err(Refusal::Settling { until }) => until,
            Err(refusal) => {
                server.refusals += 1;
                if refusals == 0 {
                    let decision = (What::Refused, Why::Refused(refusal));
                    self.enter(slot, decision, (old, None));
                }
                self.now + FIRST_RETRY.doubled(refusals, LONGEST_RETRY)
            }
        };
        let server = self.enforcer.servers.get_mut(slot);
        server.state.back_off(until, Some(why));
        self.timers.set(until, TimerEvent::Retry(task.id));
    }

    fn gave_back(&mut self, slot: Slot, why: Why, old: Option<Reservation>) {
        self.enforcer.servers.get_mut(slot).refusals = 0;
        self.change(slot, Enforcement::released);
        self.enter(slot, (What::Released, why), (old, None));
    }

    pub(crate) fn yield_to_other(&mut self, slot: Slot, refusal: Option<Refusal>) {
        self.arbiter.withdraw(slot);
        let old = self.enforcer.held(slot);
        self.change(slot, Enforcement::yield_to_other);
        let refusal = refusal.unwrap_or(Refusal::TakenOver {
            now: "it no longer has its reservation".to_owned(),
        });
        let decision = (What::TakenOver, Why::Refused(refusal));
        self.enter(slot, decision, (old, None));
    }

    /// Checks whether the thread still has its reservation: the kernel may have left it without
    /// effect, and an administrator may have changed it. `runs` tells whether the thread runs now.
    pub(crate) fn reconcile(&mut self, slot: Slot, (task, runs): (TaskId, bool)) {
        let actuator = &mut self.enforcer.actuator;
        let standing = if runs {
            actuator.standing_of_running(task)
        } else {
            actuator.standing(task)
        };
        match standing {
            Standing::Held(_) => {}
            Standing::TakenOver => self.yield_to_other(slot, None),
            Standing::Gone => self.let_go(slot),
            Standing::Own => {
                self.change(slot, Enforcement::released);
                self.arbiter.ask(slot, Why::GivenBackByKernel);
            }
        }
    }

    fn change(&mut self, slot: Slot, change: impl FnOnce(&mut Enforcement)) {
        let enforcer = &mut *self.enforcer;
        let server = enforcer.servers.get_mut(slot);
        let before = server.held();
        change(&mut server.state);
        let held = server.held();
        enforcer.in_force = enforcer.in_force - bandwidth(before) + bandwidth(held);
        if let Some(thread) = self.tasks.get_mut(slot) {
            let held = held.map(|held| held.bandwidth());
            thread.account.holding.holds(held, self.now);
        }
    }

    /// Refused, the thread keeps its former reservation.
    pub(crate) fn put_in_force(&mut self, slot: Slot, target: Reservation) -> Result<(), Refusal> {
        let task = self.task(slot).ok_or(Refusal::Gone)?;
        let counted = as_counted(target, self.scale, &self.enforcer.capacity);
        self.enforcer.actuator.reserve(task.id, counted)
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

// The state of enforcement of a thread. Only its functions go from one state to another.
//
// ```text
//   Open ──── back_off ────▶ BackOff ──── retry, in time ────▶ Open
//   any ── reserve ──▶ Open    any ── yield_to_other ──▶ Yielded    any ── gone ──▶ Gone
// ```
//
// In a back-off, `released` changes what is in force, and the back-off goes on.

/// The reservation in force for a thread, and whether the actuator can be asked for more.
#[derive(Debug)]
pub(crate) enum Enforcement {
    Open(Option<Reservation>),
    /// The actuator refused: it is asked again at `until`.
    BackOff {
        held: Option<Reservation>,
        until: Instant,
        /// Why the thread is to have something else then, if that is known already.
        reason: Option<Why>,
    },
    /// Another program, an administrator or its own program decides about the thread's scheduling,
    /// for good.
    Yielded,
    Gone,
}

impl Default for Enforcement {
    fn default() -> Self {
        Self::Open(None)
    }
}

impl Enforcement {
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    pub(crate) const fn is_backed_off(&self) -> bool {
        matches!(self, Self::BackOff { .. })
    }

    pub(crate) const fn is_over(&self) -> bool {
        matches!(self, Self::Yielded | Self::Gone)
    }

    pub(crate) const fn is_yielded(&self) -> bool {
        matches!(self, Self::Yielded)
    }

    pub(crate) const fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    const fn held(&self) -> Option<Reservation> {
        match self {
            Self::Open(held) | Self::BackOff { held, .. } => *held,
            Self::Yielded | Self::Gone => None,
        }
    }

    fn reserve(&mut self, reservation: Reservation) {
        *self = Self::Open(Some(reservation));
    }

    fn released(&mut self) {
        if let Self::Open(held) | Self::BackOff { held, .. } = self {
            *held = None;
        }
    }

    /// The actuator is asked again at `until`, then for this `reason`. The reservation in force
    /// stays.
    fn back_off(&mut self, until: Instant, reason: Option<Why>) {
        *self = match std::mem::take(self) {
            Self::Open(held) | Self::BackOff { held, .. } => Self::BackOff {
                held,
                until,
                reason,
            },
            over => over,
        };
    }

    /// Whether a back-off is over at `now`, and for which reason the actuator is to be asked then.
    fn retry(&mut self, now: Instant) -> Option<Option<Why>> {
        match std::mem::take(self) {
            Self::BackOff {
                held,
                until,
                reason,
            } if until <= now => {
                *self = Self::Open(held);
                Some(reason)
            }
            other => {
                *self = other;
                None
            }
        }
    }

    fn yield_to_other(&mut self) {
        *self = Self::Yielded;
    }

    fn gone(&mut self) {
        *self = Self::Gone;
    }
}
