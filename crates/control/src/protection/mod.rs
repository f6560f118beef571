//! Protection of an application's threads without a reservation, from their first instruction on
//! and while the application keeps a beat: nice -20, and a real-time priority while it begins.
//!
//! A program with deadlines is more than its threads with a rhythm. It loads and decodes its first
//! frame before a rhythm is known. Later, its rasterisers, decoders and thread pools hold up the
//! beat when they wait. The kernel refuses a reservation for a thread that is bound to a CPU. A
//! nice value needs no admission, throttles no thread, and is bounded by itself.
//!
//! ```text
//!          its application begins,                      reserved, or the application
//!          or keeps a beat                              keeps none any more
//!   None ─────────────────────────▶ InForce ──────────────────────────────────▶ None
//!                                      │  computes without a pause       ▲
//!                                      ▼                                 │ after a pause
//!                                  Suspended ────────────────────────────┘
//! ```
//!
//! At the beginning, threads that begin together crowd on one CPU if they are ordinary, and hogs
//! have the others: a real-time priority shows the first frame beside hogs 0.13 s sooner
//! (experiments/programs). Nothing but this loop bounds it. So it looks every few milliseconds at
//! the CPU time of such threads, which the application has a fixed amount of.
//!
//! The kernel compares nice values only inside one control group or session. If an application
//! still waits while others have the CPUs, its starving threads go on probation.
//!
//! After its beginning, an application that hears no clock is a batch program and is ordinary
//! again. So is one that hears a clock, uses the CPUs to capacity and shows no rhythm for 20 s.

mod application;
pub(crate) mod boost;

use onbeat_model::{Actuator, Boost, Burst, Instant, Refusal, Span, TaskId};

use crate::enforcement::Enforcer;
use crate::estimation::clock::Outside;
use crate::pipeline::PipelineFinder;
use crate::slots::{BySlot, Slot};
use crate::task::TrackedThread;
use crate::task::table::TaskTable;
use crate::timer::{TimerEvent, TimerQueue};
use crate::tuning::clock::QUARTER;
use crate::tuning::lock::LONGEST_JOB_AT_LEAST;
use crate::tuning::protection::{COUNTED_EVERY, GLANCE, LONGEST_PAUSE, PAUSES, PROTECTED};
use crate::tuning::starvation::{AWAKE, FED, FIRST_PAUSE};
use application::{ProtectedApplication, ProtectedApplications};
use boost::{BoostEntry, BoostWhat, BoostWhy, Notifiers, Pleading};

/// All that is done for threads without a reservation.
#[derive(Debug, Default)]
pub(crate) struct Protector {
    applications: ProtectedApplications,
    threads: BySlot<Protection>,
    boosts: Notifiers,
    /// Time of the last review of all applications, and of the next one of any kind.
    looked: Instant,
    next: Instant,
    /// Time of the last look at nice values.
    glanced: Instant,
    /// Some application goes first.
    goes_first: bool,
    /// Number of threads that were ever protected.
    protected: u64,
    log: Vec<BoostEntry>,
}

/// The parts of the loop that protection acts with.
pub(crate) struct LoopParts<'a, A> {
    pub(crate) tasks: &'a TaskTable,
    pub(crate) enforcer: &'a mut Enforcer<A>,
    pub(crate) pipelines: &'a PipelineFinder,
    pub(crate) timers: &'a mut TimerQueue<TimerEvent>,
    /// Whether applications are protected at all.
    pub(crate) protects: bool,
    pub(crate) now: Instant,
}

/// How one thread is protected.
#[derive(Debug, Default)]
pub(crate) struct Protection {
    /// The first process of the application that it was entered for.
    application: Option<u32>,
    /// It is the first thread of its process.
    is_process: bool,
    state: ProtectionState,
    account: ChargedTime,
    /// Wakeups by interrupts and other applications while its own may be late.
    outside: Outside,
    in_vain: bool,
    was_in_force: bool,
    /// Number of times that the thread lost it for computing.
    suspensions: u32,
    /// Its notifications of missed deadlines while it had no reservation.
    pleading: Option<Box<Pleading>>,
}

/// See the file's head.
#[derive(Clone, Copy, Debug, Default)]
enum ProtectionState {
    #[default]
    None,
    InForce {
        boost: Boost,
        /// The CPU time since the thread last paused.
        computed: Span,
    },
    Suspended {
        until: Instant,
    },
    /// The actuator refused, or the thread had a nice value or policy of its own.
    Refused,
    /// The thread, or a person, set a nice value above 0 or another policy meanwhile.
    Declined,
}

/// A thread's CPU time that is charged to its application. A burst is charged at its end. A long
/// one is charged at each review as well.
#[derive(Clone, Copy, Debug, Default)]
struct ChargedTime {
    /// CPU time at the end of the last burst; none before the first review.
    told: Option<Span>,
    /// The part of the present burst that is charged already.
    ahead: Span,
    /// End of the last burst.
    blocked: Option<Instant>,
    recent: Did,
}

/// A thread's CPU time and sleep since the last review.
#[derive(Clone, Copy, Debug, Default)]
struct Did {
    used: Span,
    slept: Span,
}

impl ChargedTime {
    /// Takes in a burst that ended, and returns the CPU time to charge for it.
    fn burst(&mut self, burst: &Burst) -> Span {
        if let Some(told) = &mut self.told {
            *told += burst.executed;
        }
        if let Some(blocked) = self.blocked.replace(burst.blocked) {
            self.recent.slept += burst.woke.since(blocked);
        }
        let charge = burst.executed - std::mem::take(&mut self.ahead);
        self.recent.used += charge;
        charge
    }

    /// Takes in the thread's whole CPU time. Returns the part to charge, and what the thread did
    /// since the last review.
    fn look(&mut self, total: Span) -> (Span, Did) {
        let charge = self.count(total);
        (charge, std::mem::take(&mut self.recent))
    }

    /// Takes in the thread's whole CPU time, and returns the part to charge.
    fn count(&mut self, total: Span) -> Span {
        let open = total - *self.told.get_or_insert(total);
        let charge = open - std::mem::replace(&mut self.ahead, open);
        self.recent.used += charge;
        charge
    }
}

impl Protection {
    const fn is_in_force(&self) -> bool {
        matches!(self.state, ProtectionState::InForce { .. })
    }

    /// It is, and the thread goes before all ordinary ones.
    fn goes_first(&self) -> bool {
        matches!(self.state, ProtectionState::InForce { boost, .. } if boost.first)
    }

    /// It was in force once.
    pub(crate) const fn was_in_force(&self) -> bool {
        self.was_in_force
    }

    /// Protection does not help: the application waits all the same, or the actuator refused.
    pub(crate) const fn is_in_vain(&self) -> bool {
        self.in_vain || matches!(self.state, ProtectionState::Refused)
    }

    /// It is in force and helps.
    pub(crate) const fn helps(&self) -> bool {
        self.is_in_force() && !self.in_vain
    }

    /// The thread is to have a smaller share than others, so its starving is no reason for a
    /// probation.
    pub(crate) const fn is_declined(&self) -> bool {
        matches!(self.state, ProtectionState::Declined)
    }

    /// True if interrupts or other applications woke it all through the last quarter of a second.
    fn hears_others(&self, now: Instant) -> bool {
        self.outside.may_become_steady(now)
    }

    /// True if the thread only computes. `over` is the time since the last review. A thread that
    /// goes first is bounded by its application's account, and what it computes meanwhile is the
    /// work of a beginning.
    fn computes(&mut self, Did { used, slept }: Did, over: Span) -> bool {
        let ProtectionState::InForce { boost, computed } = &mut self.state else {
            return false;
        };
        if boost.first {
            return false;
        }
        let pauses = used == Span::ZERO || slept.ratio(over) >= PAUSES;
        *computed = if pauses { Span::ZERO } else { *computed + used };
        *computed >= LONGEST_JOB_AT_LEAST
    }

    fn suspend(&mut self, now: Instant) {
        if matches!(
            self.state,
            ProtectionState::Refused | ProtectionState::Declined
        ) {
            return;
        }
        let pause = FIRST_PAUSE.doubled(self.suspensions, LONGEST_PAUSE);
        self.suspensions = self.suspensions.saturating_add(1);
        self.state = ProtectionState::Suspended { until: now + pause };
    }

    fn resumes(&mut self, now: Instant) {
        if matches!(self.state, ProtectionState::Suspended { until } if until <= now) {
            self.state = ProtectionState::None;
        }
    }
}

impl Protector {
    /// How the thread in `slot` is protected.
    pub(crate) fn of(&self, slot: Slot) -> &Protection {
        self.threads.get(slot)
    }

    /// The number of threads that were ever protected.
    pub(crate) const fn protected(&self) -> u64 {
        self.protected
    }

    /// The thread in `slot` is no more.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.stop_pleading(slot);
        let thread = self.threads.take(slot);
        if let Some(application) = thread.application {
            self.applications.leave(application, thread.is_process);
        }
    }

    /// The application of the thread in `slot`.
    fn application(&self, slot: Slot) -> Option<&ProtectedApplication> {
        let application = self.of(slot).application?;
        self.applications.get(application)
    }

    /// Protects a thread that is tracked from now on, if its application is protected.
    pub(crate) fn enter<A: Actuator>(&mut self, around: &mut LoopParts<'_, A>, slot: Slot) {
        let now = around.now;
        let thread = around.tasks.get(slot).filter(|_| around.protects);
        let Some(thread) = thread else {
            return;
        };
        let application = thread.application();
        let is_process = thread.task.id.tid == thread.task.pid;
        let protection = self.threads.get_mut(slot);
        let before = protection.application.replace(application);
        let was_process = std::mem::replace(&mut protection.is_process, is_process);
        let is_first = self.applications.is_empty();
        if is_first {
            self.looked = now;
            self.glanced = now;
        }
        let application = self.applications.enter(application, is_process, now);
        let (why, goes_first) = (application.protects(now), application.goes_first(now));
        // It was tracked before.
        if let Some(before) = before {
            self.applications.leave(before, was_process);
        }
        if goes_first && !std::mem::replace(&mut self.goes_first, true) {
            self.review_at(around, now + COUNTED_EVERY);
        } else if is_first {
            self.review_at(around, now + QUARTER);
        }
        if let Some(why) = why {
            self.protect(around, slot, why);
        }
    }

    fn review_at<A>(&mut self, around: &mut LoopParts<'_, A>, at: Instant) {
        self.next = at;
        around.timers.set(at, TimerEvent::Protection);
    }

    /// True if threads have boosts that are good for an account alone, which is kept by the loop.
    pub(crate) const fn goes_first(&self) -> bool {
        self.goes_first
    }

    /// Charges a burst to its application, and counts a wakeup by an interrupt or, `by_others`, by
    /// another application.
    pub(crate) fn burst(&mut self, slot: Slot, burst: &Burst, by_others: impl FnOnce() -> bool) {
        if self.applications.is_empty() && self.boosts.is_empty() {
            return;
        }
        let thread = self.threads.get_mut(slot);
        let application = thread.application;
        let application = application.and_then(|it| self.applications.get_mut(it));
        if let Some(pleading) = &mut thread.pleading {
            pleading.burst(burst.woke, burst.blocked);
        }
        if let Some(application) = application {
            application.charge(thread.account.burst(burst));
            if thread.is_in_force() {
                application.wait(burst.response() - burst.executed);
            }
            if application.woken(burst, by_others) {
                thread.outside.heard(burst.woke);
            }
        }
    }

    /// The end of the time in which its application began, and could show a rhythm.
    pub(crate) fn had_its_chance(&self, slot: Slot) -> Option<Instant> {
        let application = self.application(slot);
        let helped = application.filter(|_| !self.of(slot).is_in_vain());
        helped.map(ProtectedApplication::has_begun_at)
    }

    /// True if the thread's protection helps, and its application is too young for a probation.
    pub(crate) fn is_tried(&self, slot: Slot, now: Instant) -> bool {
        let application = self.application(slot);
        let is_young = application.is_some_and(|application| application.is_young(now));
        is_young && self.of(slot).helps()
    }

    /// Reviews all applications and their threads. In a `crowd` that is done more rarely, because
    /// each thread costs some system calls.
    pub(crate) fn review<A: Actuator>(
        &mut self,
        around: &mut LoopParts<'_, A>,
        crowd: u64,
        executed: &mut dyn FnMut(TaskId) -> Option<Span>,
    ) {
        let now = around.now;
        if now < self.next || self.applications.is_empty() {
            return;
        }
        if self.goes_first {
            self.count(around, executed);
        }
        let pause = QUARTER * crowd;
        let begins = self.applications.any_begins(now);
        let next = if self.goes_first {
            COUNTED_EVERY
        } else if begins {
            GLANCE
        } else {
            pause
        };
        self.review_at(around, now + next);
        let over = now.since(self.looked);
        if begins && over < pause {
            if now.since(self.glanced) >= GLANCE {
                self.glanced = now;
                self.glance(around);
            }
            return;
        }
        self.looked = now;
        self.glanced = now;
        let mut computing = Vec::new();
        let tasks = around.tasks;
        for (slot, thread) in tasks.iter() {
            let protection = self.threads.get_mut(slot);
            let application = protection.application;
            let application = application.and_then(|it| self.applications.get_mut(it));
            let Some(application) = application else {
                continue;
            };
            if thread.estimator.is_locked() && !around.pipelines.role(slot).is_partner() {
                application.prove(now);
            }
            if !protection.is_in_force() {
                continue;
            }
            let Some(total) = executed(thread.task.id) else {
                continue;
            };
            let (charge, did) = protection.account.look(total);
            application.charge(charge);
            let is_silent = thread.estimator.last_heard() + over < now;
            if is_silent && (AWAKE..FED).contains(&did.used.ratio(over)) {
                application.wait(over - did.used);
            }
            let may_be_late = application.may_be_late(now);
            if protection.computes(did, over) && !(may_be_late && protection.hears_others(now)) {
                computing.push(slot);
            }
        }
        let cpus = around.enforcer.capacity().cpus;
        self.applications.review(now, over, cpus);
        for (slot, thread) in tasks.iter() {
            let computes = computing.binary_search(&slot).is_ok();
            self.review_one(around, (slot, thread), computes);
        }
    }

    /// Charges the applications that go first with what their threads have used by now, and ends
    /// that for those that have begun.
    fn count<A: Actuator>(
        &mut self,
        around: &mut LoopParts<'_, A>,
        executed: &mut dyn FnMut(TaskId) -> Option<Span>,
    ) {
        let tasks = around.tasks;
        let goes_first = |(slot, _): &(Slot, &TrackedThread)| self.threads.get(*slot).goes_first();
        let first: Vec<(Slot, &TrackedThread)> = tasks.iter().filter(goes_first).collect();
        for &(slot, thread) in &first {
            let total = executed(thread.task.id);
            let protection = self.threads.get_mut(slot);
            let application = protection.application;
            let application = application.and_then(|it| self.applications.get_mut(it));
            if let Some((application, total)) = application.zip(total) {
                application.charge(protection.account.count(total));
            }
        }
        for (slot, thread) in first {
            let application = self.application(slot);
            if application.is_none_or(|application| !application.goes_first(around.now)) {
                self.goes_first_no_more(around, (slot, thread));
            }
        }
        self.goes_first = self.applications.any_goes_first(around.now);
    }

    fn goes_first_no_more<A: Actuator>(
        &mut self,
        around: &mut LoopParts<'_, A>,
        (slot, thread): (Slot, &TrackedThread),
    ) {
        let application = self.application(slot);
        let is_protected = application.is_some_and(|it| it.protects(around.now).is_some());
        if !is_protected && !thread.estimator.is_on_probation() {
            self.unprotect(around, slot, BoostWhy::NoBeat);
            return;
        }
        if let ProtectionState::InForce { boost, .. } = &mut self.threads.get_mut(slot).state {
            let old = std::mem::replace(boost, PROTECTED);
            let change = (Some(old), Some(PROTECTED));
            let (what, why) = (BoostWhat::BoostChanged, BoostWhy::HasBegun);
            self.enter_change(thread.task, what, why, change, around.now);
            self.look_at(around, (slot, thread));
        }
    }

    /// Looks at the nice values of the protected threads that ran since the last glance. One that
    /// goes first and sets a limit on how long it may is to lose that at once.
    fn glance<A: Actuator>(&mut self, around: &mut LoopParts<'_, A>) {
        let tasks = around.tasks;
        for (slot, thread) in tasks.iter() {
            let ran = thread.estimator.last_heard() + GLANCE * 2 >= around.now;
            let protection = self.of(slot);
            if protection.goes_first() || ran && protection.is_in_force() {
                self.look_at(around, (slot, thread));
            }
        }
    }

    fn review_one<A: Actuator>(
        &mut self,
        around: &mut LoopParts<'_, A>,
        (slot, thread): (Slot, &TrackedThread),
        computes: bool,
    ) {
        let now = around.now;
        let application = self.application(slot);
        let why = application.and_then(|application| application.protects(now));
        let in_vain = application.is_some_and(|application| application.is_in_vain(now));
        let protection = self.threads.get_mut(slot);
        protection.resumes(now);
        protection.in_vain = in_vain;
        let on_probation = thread.estimator.is_on_probation();
        if !protection.is_in_force() {
            if let Some(why) = why.or(on_probation.then_some(BoostWhy::OnProbation)) {
                self.protect(around, slot, why);
            }
            return;
        }
        if thread.estimator.last_heard() + QUARTER >= now {
            self.look_at(around, (slot, thread));
        }
        if computes && !on_probation {
            self.unprotect(around, slot, BoostWhy::Computes);
            self.threads.get_mut(slot).suspend(now);
        } else if why.is_none() && !on_probation {
            self.unprotect(around, slot, BoostWhy::NoBeat);
        }
    }

    /// Boosts the thread again if it has set a nice value of 0 or below.
    fn look_at<A: Actuator>(
        &mut self,
        around: &mut LoopParts<'_, A>,
        (slot, thread): (Slot, &TrackedThread),
    ) {
        let ProtectionState::InForce { boost, .. } = self.of(slot).state else {
            return;
        };
        if around.enforcer.boost(thread.task.id, Some(boost)).is_err() {
            self.threads.get_mut(slot).state = ProtectionState::Declined;
            let (what, why) = (BoostWhat::BoostEnded, BoostWhy::Changed);
            self.enter_change(thread.task, what, why, (Some(boost), None), around.now);
        }
    }

    /// Protects the thread, unless it is protected already, may not be, or only computes.
    pub(crate) fn protect<A: Actuator>(
        &mut self,
        around: &mut LoopParts<'_, A>,
        slot: Slot,
        why: BoostWhy,
    ) {
        let Some(thread) = around.tasks.get(slot) else {
            return;
        };
        let server = around.enforcer.server(slot);
        let may_be = server.is_clean()
            && server.fixed().is_none()
            && !server.is_over()
            && !thread.unheard
            && !around.pipelines.role(slot).is_partner();
        let is_open = match self.of(slot).state {
            ProtectionState::None => true,
            ProtectionState::Suspended { .. } => thread.estimator.is_on_probation(),
            ProtectionState::InForce { .. }
            | ProtectionState::Refused
            | ProtectionState::Declined => false,
        };
        if !around.protects || !is_open || !may_be {
            return;
        }
        // A thread with a share or a priority of its own may have a reservation all the same.
        let application = self.application(slot);
        let boost = application.map_or(PROTECTED, |application| application.boost(around.now));
        let boosted = around.enforcer.boost(thread.task.id, Some(boost));
        let protection = self.threads.get_mut(slot);
        if let Err(refusal) = boosted {
            protection.state = match refusal.retry_at() {
                Some(until) => ProtectionState::Suspended { until },
                None => ProtectionState::Refused,
            };
            return;
        }
        protection.state = ProtectionState::InForce {
            boost,
            computed: Span::ZERO,
        };
        let before = std::mem::replace(&mut protection.was_in_force, true);
        self.protected += u64::from(!before);
        let change = (None, Some(boost));
        self.enter_change(thread.task, BoostWhat::Boosted, why, change, around.now);
    }

    /// Ends all boosts of a thread whose user has used too much, until then; or for good, of a
    /// thread that gets a priority by another way.
    pub(crate) fn give_up<A: Actuator>(
        &mut self,
        around: &mut LoopParts<'_, A>,
        slot: Slot,
        (why, until): (BoostWhy, Option<Instant>),
    ) -> Option<Refusal> {
        let refusal = self.end_boost(around, slot, why.clone());
        self.unprotect(around, slot, why);
        let state = &mut self.threads.get_mut(slot).state;
        *state = match (*state, until) {
            (ProtectionState::None, Some(until)) => ProtectionState::Suspended { until },
            (ProtectionState::None | ProtectionState::Suspended { .. }, None) => {
                ProtectionState::Refused
            }
            (state, _) => state,
        };
        refusal
    }

    /// Ends the thread's protection.
    pub(crate) fn unprotect<A: Actuator>(
        &mut self,
        around: &mut LoopParts<'_, A>,
        slot: Slot,
        why: BoostWhy,
    ) {
        let protection = self.threads.get_mut(slot);
        let ProtectionState::InForce { boost: old, .. } = protection.state else {
            return;
        };
        let Some(thread) = around.tasks.get(slot) else {
            return;
        };
        let pleading = protection.pleading.as_ref();
        let boost = pleading.and_then(|pleading| pleading.in_force());
        protection.state = match around.enforcer.boost(thread.task.id, boost) {
            Ok(()) => ProtectionState::None,
            Err(_) => ProtectionState::Declined,
        };
        self.enter_change(
            thread.task,
            BoostWhat::BoostEnded,
            why,
            (Some(old), None),
            around.now,
        );
    }

    /// Notes that a reservation has taken the boost's place, or boosts again if it was refused.
    pub(crate) fn replaced<A: Actuator>(&mut self, around: &mut LoopParts<'_, A>, slot: Slot) {
        let protection = self.threads.get_mut(slot);
        let ProtectionState::InForce { boost, .. } = protection.state else {
            return;
        };
        protection.state = ProtectionState::None;
        if around.enforcer.held(slot).is_none() {
            self.protect(around, slot, BoostWhy::KeepsBeat);
        } else if let Some(thread) = around.tasks.get(slot) {
            let (what, why) = (BoostWhat::BoostEnded, BoostWhy::Reserved);
            self.enter_change(thread.task, what, why, (Some(boost), None), around.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_only_computes_loses_its_protection_for_a_minute_at_most() {
        let mut protection = Protection::default();
        (0..9).for_each(|_| protection.suspend(Instant::ZERO));
        protection.resumes(Instant::ZERO + Span::from_ms(59_999));
        assert!(matches!(
            protection.state,
            ProtectionState::Suspended { .. }
        ));
        protection.resumes(Instant::ZERO + Span::from_secs(60));
        assert!(matches!(protection.state, ProtectionState::None));
    }

    #[test]
    fn a_fiftieth_of_the_time_asleep_is_a_pause() {
        let computes = |slept_ms| {
            let mut protection = Protection {
                state: ProtectionState::InForce {
                    boost: PROTECTED,
                    computed: Span::ZERO,
                },
                ..Protection::default()
            };
            let did = Did {
                used: Span::from_ms(900),
                slept: Span::from_ms(slept_ms),
            };
            protection.computes(did, Span::from_ms(1000))
        };
        assert!(computes(19));
        assert!(!computes(21));
    }
}
