//! The members of applications: who is raised above ordinary tasks, by the ladder
//! (`onbeat_decide::ladder`), and charged for it.
//!
//! A program with deadlines is more than its threads with a period. It loads and decodes its first
//! frame before a period is known. Later, its rasterisers, decoders and thread pools hold up the
//! beat when they wait. The kernel refuses a reservation for a thread that is bound to a CPU, and
//! stops one that yields. A raised thread is never stopped.
//!
//! ```text
//!          its application needs it, and has not used up its account
//!   None ─────────────────────────────────────────────────────────────▶ InForce
//!        ◀─────────────────────────────────────────────────────────────
//!          reserved, no need any more, or used up
//! ```
//!
//! Nothing but this loop bounds a real-time priority, so it looks at the CPU time of raised threads
//! before they can have used up their account.
//!
//! The kernel compares nice values, which are the means where it refuses a priority, only inside
//! one control group or session. Where that, or any other means, does not help, the guard
//! (`onbeat_decide::guard`) ends it.

mod application;

use onbeat_decide::ladder::{self, MemberFacts, Rung, RungWhy};
use onbeat_model::{Actuator, Boost, Burst, Instant, Refusal, Sensor, Span, Task, TaskId};

use crate::Why;
use crate::enforcement::Enforcer;
use crate::need::Sign;
use crate::pipeline::PipelineFinder;
use crate::report::decision::{BoostEntry, BoostWhat};
use crate::settings::AllowedMeans;
use crate::task::TaskTable;
use crate::task::{BySlot, Slot};
use crate::timer::{QUARTER, TimerEvent, TimerQueue};
use application::{ProtectedApplication, ProtectedApplications};

/// What raises a thread whose application keeps no period. A priority where the kernel permits it:
/// of three threads that decode a film's first frame beside hogs with nice -20, all were on one
/// CPU, and a hog had half of the other. If not, the largest share of an ordinary thread; a slice
/// below the kernel's 3 ms preempts a hog at its thread's wakeup (PREEMPT_SHORT, Linux 6.12).
pub const RAISED: Boost = Boost {
    levels: 20,
    slice: Span::from_ms(1),
    priority: 1,
};
/// The least time between two looks at what raised threads have used.
const COUNTED_EVERY: Span = Span::from_ms(5);
/// The time between two looks at the nice values of an application that begins: its threads set
/// values of their own, and wait behind all others until they are boosted again.
const GLANCE: Span = Span::from_ms(50);
/// A look takes some 40 us, so this is 8% of a CPU at most.
const GLANCED_AT_ONCE: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Protector {
    applications: ProtectedApplications,
    threads: BySlot<Protection>,
    looked: Instant,
    next: Instant,
    glanced: Instant,
    /// The first of the raised threads that the next glance looks at.
    glance_first: usize,
    /// The idle time of all CPUs at the last review, and now.
    idle: (Option<Span>, Option<Span>),
    /// Some thread is raised, which the loop alone bounds.
    has_raised: bool,
    /// Threads that the meter is to charge to an application.
    unassigned: Vec<(TaskId, u32)>,
    /// Applications whose need began or ended, or that the guard leaves another rung.
    changed: Vec<u32>,
    protected: u64,
    log: Vec<BoostEntry>,
}

pub(crate) struct Protecting<'a, A> {
    pub(crate) protector: &'a mut Protector,
    pub(crate) tasks: &'a TaskTable,
    pub(crate) enforcer: &'a mut Enforcer<A>,
    pub(crate) pipelines: &'a PipelineFinder,
    pub(crate) timers: &'a mut TimerQueue,
    pub(crate) means: AllowedMeans,
    /// The most CPUs that all grants together may have.
    pub(crate) total: f64,
    pub(crate) now: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct Protection {
    /// The first process of the application that it was entered for.
    application: Option<u32>,
    is_process: bool,
    state: ProtectionState,
    was_in_force: bool,
    /// Why it cannot be raised, if that is its own scheduling.
    refusal: Option<Why>,
}

#[derive(Clone, Copy, Debug, Default)]
enum ProtectionState {
    #[default]
    None,
    InForce(Boost),
    /// Until then, or for good: the actuator refused, or it, another program or a person decides
    /// about its scheduling.
    Off(Option<Instant>),
}

impl Protection {
    pub(crate) const fn is_in_force(&self) -> bool {
        matches!(self.state, ProtectionState::InForce(_))
    }

    pub(crate) const fn was_in_force(&self) -> bool {
        self.was_in_force
    }

    pub(crate) const fn refusal(&self) -> Option<&Why> {
        self.refusal.as_ref()
    }

    fn resumes(&mut self, now: Instant) {
        if matches!(self.state, ProtectionState::Off(Some(until)) if until <= now) {
            self.state = ProtectionState::None;
        }
    }
}

impl Protector {
    pub(crate) fn of(&self, slot: Slot) -> &Protection {
        self.threads.get(slot)
    }

    pub(crate) const fn protected(&self) -> u64 {
        self.protected
    }

    pub(crate) fn forget(&mut self, slot: Slot) {
        let thread = self.threads.take(slot);
        if let Some(application) = thread.application {
            self.applications.leave(application, thread.is_process);
        }
    }

    fn application(&self, slot: Slot) -> Option<&ProtectedApplication> {
        self.applications.all.get(&self.of(slot).application?)
    }

    fn application_mut(&mut self, slot: Slot) -> Option<&mut ProtectedApplication> {
        let application = self.threads.get(slot).application?;
        self.applications.all.get_mut(&application)
    }

    pub(crate) fn balance(&mut self, application: u32, now: Instant) -> Option<(Span, Span)> {
        let application = self.applications.all.get_mut(&application)?;
        Some(application.balance(now))
    }

    pub(crate) fn begins_in_need(&mut self, now: Instant) {
        self.applications.at_start.begin(now);
    }

    /// Whether the application of the thread in `slot` may have reservations, or why not. Where
    /// none is known, it may.
    pub(crate) fn allows(&self, slot: Slot, always: bool, now: Instant) -> Result<(), Why> {
        let Some(application) = self.application(slot) else {
            return Ok(());
        };
        match application.guarded() {
            _ if !always && !application.needs(now) => Err(Why::NoNeed),
            Some(RungWhy::Granted) => Err(Why::AskedFor),
            Some(why) => Err(words(why)),
            None => Ok(()),
        }
    }

    pub(crate) fn take_changed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.changed)
    }

    /// Whether the next review compares how long the CPUs have been idle.
    pub(crate) fn wants_idle(&self, always: bool, now: Instant) -> bool {
        let mut all = self.applications.all.values();
        now >= self.next
            && now.since(self.looked) >= QUARTER
            && all.any(|application| !always || application.needs(now))
    }

    pub(crate) fn idle(&mut self, idle: &[Span]) {
        self.idle.1 = Some(idle.iter().copied().sum());
    }

    /// The time until the next review of raised threads, which the loop alone bounds.
    pub(crate) fn pause(&self, now: Instant) -> Option<Span> {
        self.has_raised
            .then(|| self.next.since(now).max(COUNTED_EVERY))
    }

    /// Charges a burst to its application, and counts a wakeup by an interrupt.
    pub(crate) fn burst(&mut self, slot: Slot, burst: &Burst) {
        let is_raised = self.of(slot).is_in_force();
        if let Some(application) = self.application_mut(slot) {
            application.burst(burst, is_raised);
        }
    }

    /// Takes in a job of the thread in `slot`, which was late after it had waited so long.
    pub(crate) fn job(&mut self, slot: Slot, late: Span) {
        if let Some(application) = self.application_mut(slot) {
            application.job(late);
        }
    }

    /// The thread in `slot` kept a period, and computes now: what its application was granted for
    /// the one is not for the other, unless another thread keeps one.
    pub(crate) fn computes(&mut self, slot: Slot, now: Instant) {
        if let Some(application) = self.application_mut(slot) {
            application.lose_beat(now);
        }
    }

    /// Has the meter charge new threads to their applications.
    pub(crate) fn assign(&mut self, sensor: &mut impl Sensor) {
        for (task, application) in self.unassigned.drain(..) {
            sensor.assign(task, application);
            if let Some(it) = self.applications.all.get_mut(&application) {
                it.meter(sensor.spent(application));
            }
        }
    }

    fn boost(&self, slot: Slot, means: AllowedMeans) -> Boost {
        let period = self.application(slot).and_then(|it| it.period());
        let priority = if means.priority {
            ladder::priority(period)
        } else {
            0
        };
        Boost { priority, ..RAISED }
    }

    pub(crate) fn drain(&mut self) -> std::vec::Drain<'_, BoostEntry> {
        self.log.drain(..)
    }
}

impl<A: Actuator> Protecting<'_, A> {
    pub(crate) fn enter(&mut self, slot: Slot) {
        let Some(thread) = self.tasks.get(slot) else {
            return;
        };
        let application = thread.application();
        let is_process = thread.task.id.tid == thread.task.pid;
        let protection = self.protector.threads.get_mut(slot);
        let before = protection.application.replace(application);
        let was_process = std::mem::replace(&mut protection.is_process, is_process);
        if self.protector.applications.all.is_empty() {
            self.protector.looked = self.now;
            self.protector.glanced = self.now;
            self.review_at(self.now + QUARTER);
        }
        let applications = &mut self.protector.applications;
        applications.enter(application, is_process, self.now);
        // It was tracked before.
        if let Some(before) = before {
            applications.leave(before, was_process);
        }
        let unassigned = (thread.task.id, application);
        self.protector.unassigned.push(unassigned);
        self.put(slot);
    }

    /// Moves a thread to its application, which is another one since it was taken in.
    pub(crate) fn moved(&mut self, slot: Slot) {
        let now = self.tasks.get(slot).map(|thread| thread.application());
        let before = self.protector.of(slot).application;
        if before.is_some_and(|of| Some(of) != now) {
            self.protector.changed.extend(now);
            self.enter(slot);
        }
    }

    /// See [`ProtectedApplications::fix`].
    pub(crate) fn fix(&mut self, application: u32, times: Option<(Span, Span)>) -> bool {
        let applications = &mut self.protector.applications;
        applications.fix(application, times, self.total, self.now) && {
            self.review_at(self.now);
            true
        }
    }

    fn review_at(&mut self, at: Instant) {
        self.protector.next = at;
        self.timers.set(at, TimerEvent::Protection);
    }

    /// A thread waited for another program's, or says that it missed a deadline. Returns its
    /// application if that is need, which begins.
    pub(crate) fn sign(&mut self, slot: Slot, sign: Sign) -> Option<u32> {
        let application = self.protector.application_mut(slot)?;
        let period = application.period();
        if !application.need().sign(sign, period, self.now) {
            return None;
        }
        self.protector.idle.0 = None;
        self.protector.looked = self.now;
        self.review_at(self.now + COUNTED_EVERY);
        self.put_all();
        self.protector.of(slot).application
    }

    /// Charges the raised threads, reviews all applications, and puts each thread on its rung.
    pub(crate) fn review(&mut self, sensor: &mut impl Sensor) {
        let now = self.now;
        if now < self.protector.next || self.protector.applications.all.is_empty() {
            return;
        }
        self.count(sensor);
        let guarded = self.protector.applications.guard(now);
        self.protector.changed.extend(guarded);
        let over = now.since(self.protector.looked);
        if over >= QUARTER {
            self.look(over);
        }
        if now.since(self.protector.glanced) >= GLANCE {
            self.protector.glanced = now;
            self.glance();
        }
        self.put_all();
        let applications = &self.protector.applications;
        let pause = if self.protector.has_raised {
            // By then it cannot be used up, if it has all CPUs.
            let left = applications.least_left(now).unwrap_or_default();
            let cpus = u64::from(self.enforcer.capacity().cpus).max(1);
            (left / cpus).max(COUNTED_EVERY).min(GLANCE)
        } else if applications.any_compares() {
            GLANCE
        } else {
            QUARTER
        };
        let opens = applications.opens_in().unwrap_or(pause);
        self.review_at(now + pause.min(opens.max(COUNTED_EVERY)));
    }

    fn look(&mut self, over: Span) {
        let now = self.now;
        let protector = &mut *self.protector;
        protector.looked = now;
        for (slot, thread) in self.tasks.iter() {
            let rhythm = thread.estimator.rhythm();
            if let Some(application) = protector.application_mut(slot)
                && let Some(rhythm) = rhythm.filter(|_| thread.estimator.is_locked())
                && !self.pipelines.role(slot).is_partner()
            {
                application.prove(rhythm.period, now);
            }
        }
        let cpus = f64::from(self.enforcer.capacity().cpus);
        let idle = protector.idle.1.take();
        let before = std::mem::replace(&mut protector.idle.0, idle);
        let idle = idle
            .zip(before)
            .map(|(idle, before)| (idle - before).ratio(over) / cpus);
        let applications = &mut protector.applications;
        applications.review(now, over, (cpus, idle, self.total));
        protector.changed.extend(applications.take_changed(now));
    }

    /// Charges what the sensor's meter says, and looks on which rung each application is.
    fn count(&mut self, sensor: &mut impl Sensor) {
        let protector = &mut *self.protector;
        protector.applications.charge_metered(self.now, sensor);
        protector.has_raised = false;
        for (slot, _) in self.tasks.iter() {
            let is_raised = protector.of(slot).is_in_force();
            protector.has_raised |= is_raised;
            let Some(application) = protector.application_mut(slot) else {
                continue;
            };
            let server = self.enforcer.server(slot);
            if server.held().is_some() && server.fixed.is_none() {
                application.is_on(Rung::Reserved);
            } else if is_raised {
                application.is_on(Rung::Raised);
            }
        }
    }

    /// Looks at the scheduling of the raised threads that ran since the last glance: one may have
    /// set a nice value, or a limit on how long it may have a priority. And its application's
    /// shortest period may be another one.
    fn glance(&mut self) {
        let mut raised = 0;
        let first = self.protector.glance_first;
        for (slot, thread) in self.tasks.iter() {
            let ran = thread.estimator.last_heard() + GLANCE * 2 >= self.now;
            let ProtectionState::InForce(boost) = self.protector.of(slot).state else {
                continue;
            };
            let is_due = (first..first + GLANCED_AT_ONCE).contains(&raised);
            raised += 1;
            let new = self.protector.boost(slot, self.means);
            if new == boost && !(is_due && (ran || boost.priority > 0)) {
                continue;
            }
            let is_set = self.enforcer.boost(thread.task.id, Some(new)).is_ok();
            let (state, what, why) = if is_set {
                let state = ProtectionState::InForce(new);
                (state, BoostWhat::BoostChanged, Why::ShortestPeriod)
            } else {
                let state = ProtectionState::Off(None);
                (state, BoostWhat::BoostEnded, Why::Changed)
            };
            self.protector.threads.get_mut(slot).state = state;
            if !is_set || new != boost {
                let change = (Some(boost), is_set.then_some(new));
                self.enter_change(thread.task, what, why, change);
            }
        }
        let next = first + GLANCED_AT_ONCE;
        self.protector.glance_first = if next < raised { next } else { 0 };
    }

    fn put_all(&mut self) {
        for (slot, _) in self.tasks.iter() {
            self.put(slot);
        }
    }

    /// Puts the thread on its rung, as far as that is not a reservation.
    fn put(&mut self, slot: Slot) {
        let Some(thread) = self.tasks.get(slot) else {
            return;
        };
        let protection = self.protector.threads.get_mut(slot);
        protection.resumes(self.now);
        let server = self.enforcer.server(slot);
        let role = self.pipelines.role(slot);
        let member = MemberFacts {
            is_others: matches!(protection.state, ProtectionState::Off(_))
                || server.state.is_over()
                || thread.unheard
                || role.is_partner() && role.stage().is_none(),
            is_granted: server.fixed.is_some(),
            is_regular: server.held().is_some(),
        };
        let Some(application) = self.protector.application_mut(slot) else {
            return;
        };
        let facts = application.facts(self.means.always, self.now);
        match ladder::next(facts, member) {
            (Rung::Raised, _) if self.means.raises => self.raise(slot),
            (Rung::Ordinary, why) if why != RungWhy::DecidedByOthers => {
                self.unprotect(slot, words(why));
            }
            _ => {}
        }
    }

    fn raise(&mut self, slot: Slot) {
        let Some(thread) = self.tasks.get(slot) else {
            return;
        };
        if !matches!(self.protector.of(slot).state, ProtectionState::None) {
            return;
        }
        let boost = self.protector.boost(slot, self.means);
        let boosted = self.enforcer.boost(thread.task.id, Some(boost));
        let protection = self.protector.threads.get_mut(slot);
        if let Err(refusal) = boosted {
            protection.state = ProtectionState::Off(refusal.retry_at());
            if matches!(refusal, Refusal::NotOrdinary { .. }) {
                let why = Why::Refused(refusal);
                protection.refusal = Some(why.clone());
                let change = (None, Some(boost));
                self.enter_change(thread.task, BoostWhat::BoostRefused, why, change);
            }
            return;
        }
        protection.state = ProtectionState::InForce(boost);
        let before = std::mem::replace(&mut protection.was_in_force, true);
        self.protector.protected += u64::from(!before);
        if !std::mem::replace(&mut self.protector.has_raised, true) {
            self.review_at(self.now + COUNTED_EVERY);
        }
        let change = (None, Some(boost));
        self.enter_change(thread.task, BoostWhat::Boosted, Why::Waits, change);
    }

    pub(crate) fn give_up(&mut self, slot: Slot, (why, until): (Why, Option<Instant>)) {
        self.unprotect(slot, why);
        let state = &mut self.protector.threads.get_mut(slot).state;
        if matches!(state, ProtectionState::None) || until.is_none() {
            *state = ProtectionState::Off(until);
        }
    }

    pub(crate) fn unprotect(&mut self, slot: Slot, why: Why) {
        let ProtectionState::InForce(old) = self.protector.of(slot).state else {
            return;
        };
        let Some(thread) = self.tasks.get(slot) else {
            return;
        };
        let given_back = self.enforcer.boost(thread.task.id, None);
        self.protector.threads.get_mut(slot).state = match given_back {
            Ok(()) => ProtectionState::None,
            Err(_) => ProtectionState::Off(None),
        };
        self.enter_change(thread.task, BoostWhat::BoostEnded, why, (Some(old), None));
    }

    /// Notes that a reservation has taken the boost's place, or boosts again if it was refused.
    pub(crate) fn replaced(&mut self, slot: Slot) {
        let protection = self.protector.threads.get_mut(slot);
        let ProtectionState::InForce(boost) = protection.state else {
            return;
        };
        protection.state = ProtectionState::None;
        if self.enforcer.held(slot).is_none() {
            self.put(slot);
        } else if let Some(thread) = self.tasks.get(slot) {
            let (what, why) = (BoostWhat::BoostEnded, Why::ReservedInstead);
            self.enter_change(thread.task, what, why, (Some(boost), None));
        }
    }

    fn enter_change(
        &mut self,
        task: Task,
        what: BoostWhat,
        why: Why,
        (old_boost, new_boost): (Option<Boost>, Option<Boost>),
    ) {
        self.protector.log.push(BoostEntry {
            at: self.now,
            task,
            what,
            why,
            old_boost,
            new_boost,
        });
    }
}

const fn words(why: RungWhy) -> Why {
    match why {
        RungWhy::NoNeed => Why::NoNeed,
        RungWhy::UsedUp => Why::UsedUp,
        RungWhy::Compares => Why::Compares,
        RungWhy::NoBetter => Why::NoBetter,
        RungWhy::Waits => Why::Waits,
        RungWhy::Granted | RungWhy::Regular => Why::ReservedInstead,
        RungWhy::DecidedByOthers => Why::Changed,
    }
}
