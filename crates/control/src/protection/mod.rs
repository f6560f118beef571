//! Protection: nice -20 for an application's threads without a reservation, from their first
//! instruction on and while the application keeps a beat.
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
//! A real-time priority for the first second would show the first frame beside hogs 0.05 to 0.14 s
//! sooner (experiments/programs). But RLIMIT_RTTIME bounds how long a real-time thread may compute,
//! and PipeWire's clients set it to 0.2 s: the kernel would end such a program while it loads.
//!
//! The kernel compares nice values only inside one control group or session. If an application
//! still waits while others have the CPUs, its starving threads go on probation.
//!
//! After its first second, an application that hears no clock is a batch program and is ordinary
//! again. So is one that hears a clock, uses the CPUs to capacity and shows no rhythm for 20 s.

mod application;
pub(crate) mod boost;

use onbeat_model::{Actuator, Burst, Instant, Span, TaskId};

use crate::enforcement::Enforcer;
use crate::pipeline::PipelineFinder;
use crate::slots::{BySlot, Slot};
use crate::task::Thread;
use crate::task::table::TaskTable;
use crate::timer::{TimerEvent, Timers};
use crate::tuning::clock::QUARTER;
use crate::tuning::lock::LONGEST_JOB_AT_LEAST;
use crate::tuning::protection::{
    GLANCE, LONGEST_PAUSE, PAUSES, PROTECTED, STANDS_DOWN, STANDS_DOWN_LONGEST,
};
use crate::tuning::starvation::{AWAKE, FED, FIRST_PAUSE};
use application::Applications;
use boost::{BoostEntry, BoostWhat, BoostWhy, Boosts, Pleading};

/// How long a thread has no reservation whose budget made it late, if that was so `times` before.
pub(crate) fn stands_down_for(times: u32) -> Span {
    STANDS_DOWN.doubled(times, STANDS_DOWN_LONGEST)
}

/// All that is done for threads without a reservation.
#[derive(Debug, Default)]
pub(crate) struct Protector {
    applications: Applications,
    threads: BySlot<Protection>,
    boosts: Boosts,
    /// Time of the last review of all applications.
    looked: Instant,
    /// Number of threads that were ever protected.
    protected: u64,
    log: Vec<BoostEntry>,
}

/// The parts of the loop that protection acts with.
pub(crate) struct Around<'a, A> {
    pub(crate) tasks: &'a TaskTable,
    pub(crate) enforcer: &'a mut Enforcer<A>,
    pub(crate) pipelines: &'a PipelineFinder,
    pub(crate) timers: &'a mut Timers<TimerEvent>,
    /// Whether applications are protected at all.
    pub(crate) protects: bool,
}

/// How one thread is protected.
#[derive(Debug, Default)]
pub(crate) struct Protection {
    state: State,
    account: Account,
    in_vain: bool,
    was_in_force: bool,
    /// Number of times that the thread lost it for computing.
    suspensions: u32,
    /// Its notifications of missed deadlines while it had no reservation.
    pleading: Option<Box<Pleading>>,
}

/// See the file's head.
#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    None,
    InForce {
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
struct Account {
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

impl Account {
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
        let open = total - *self.told.get_or_insert(total);
        let charge = open - std::mem::replace(&mut self.ahead, open);
        self.recent.used += charge;
        (charge, std::mem::take(&mut self.recent))
    }
}

impl Protection {
    const fn is_in_force(&self) -> bool {
        matches!(self.state, State::InForce { .. })
    }

    /// It was in force once.
    pub(crate) const fn was_in_force(&self) -> bool {
        self.was_in_force
    }

    /// Protection does not help: the application waits all the same, or the actuator refused.
    pub(crate) const fn is_in_vain(&self) -> bool {
        self.in_vain || matches!(self.state, State::Refused)
    }

    /// It is in force and helps.
    pub(crate) const fn helps(&self) -> bool {
        self.is_in_force() && !self.in_vain
    }

    /// The thread is to have a smaller share than others, so its starving is no reason for a
    /// probation.
    pub(crate) const fn is_declined(&self) -> bool {
        matches!(self.state, State::Declined)
    }

    /// True if the thread only computes. `over` is the time since the last review.
    fn computes(&mut self, Did { used, slept }: Did, over: Span) -> bool {
        let State::InForce { computed } = &mut self.state else {
            return false;
        };
        let pauses = used == Span::ZERO || slept.ratio(over) >= PAUSES;
        *computed = if pauses { Span::ZERO } else { *computed + used };
        *computed >= LONGEST_JOB_AT_LEAST
    }

    fn suspend(&mut self, now: Instant) {
        if matches!(self.state, State::Refused | State::Declined) {
            return;
        }
        let pause = FIRST_PAUSE.doubled(self.suspensions, LONGEST_PAUSE);
        self.suspensions = self.suspensions.saturating_add(1);
        self.state = State::Suspended { until: now + pause };
    }

    fn resumes(&mut self, now: Instant) {
        if matches!(self.state, State::Suspended { until } if until <= now) {
            self.state = State::None;
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
        self.threads.take(slot);
    }

    /// Protects a thread that is tracked from now on, if its application is protected.
    pub(crate) fn enter<A: Actuator>(
        &mut self,
        around: &mut Around<'_, A>,
        slot: Slot,
        now: Instant,
    ) {
        let thread = around.tasks.get(slot).filter(|_| around.protects);
        let Some(payer) = thread.map(|thread| thread.party.payer) else {
            return;
        };
        if self.applications.is_empty() {
            self.looked = now;
            around.timers.set(now + QUARTER, TimerEvent::Protection);
        }
        let application = self.applications.enter(payer, now);
        if let Some(why) = application.protects(now) {
            self.protect(around, slot, why, now);
        }
    }

    /// Charges a burst to the application of its `payer`, and counts a wakeup by an interrupt.
    pub(crate) fn burst(&mut self, slot: Slot, payer: u32, burst: &Burst) {
        let application = self.applications.get_mut(payer);
        if application.is_none() && self.boosts.is_empty() {
            return;
        }
        let thread = self.threads.get_mut(slot);
        if let Some(pleading) = &mut thread.pleading {
            pleading.burst(burst.woke, burst.blocked);
        }
        if let Some(application) = application {
            application.charge(thread.account.burst(burst));
            if thread.is_in_force() {
                application.wait(burst.response() - burst.executed);
            }
            application.woken(burst);
        }
    }

    /// True if the thread's protection helps, and its application is too young for a probation.
    pub(crate) fn is_tried(&self, slot: Slot, payer: u32, now: Instant) -> bool {
        let application = self.applications.get(payer);
        let is_young = application.is_some_and(|application| application.is_young(now));
        is_young && self.of(slot).helps()
    }

    /// Reviews all applications and their threads. Of a `crowd` that is done more rarely, because
    /// each thread costs some system calls.
    pub(crate) fn review<A: Actuator>(
        &mut self,
        around: &mut Around<'_, A>,
        crowd: u64,
        now: Instant,
        executed: &mut dyn FnMut(TaskId) -> Option<Span>,
    ) {
        let pause = QUARTER * crowd;
        let begins = self.applications.any_begins(now);
        let next = if begins { GLANCE } else { pause };
        around.timers.set(now + next, TimerEvent::Protection);
        let over = now.since(self.looked);
        if begins && over < pause {
            self.glance(around, now);
            return;
        }
        self.looked = now;
        let mut computing = Vec::new();
        let tasks = around.tasks;
        for (slot, thread) in tasks.iter() {
            let Some(application) = self.applications.get_mut(thread.party.payer) else {
                continue;
            };
            if thread.estimator.is_locked() && !around.pipelines.role(slot).is_partner() {
                application.prove(now);
            }
            let protection = self.threads.get_mut(slot);
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
            if protection.computes(did, over) {
                computing.push(slot);
            }
        }
        let cpus = around.enforcer.capacity().cpus;
        self.applications.review(now, over, cpus);
        for (slot, thread) in tasks.iter() {
            let computes = computing.binary_search(&slot).is_ok();
            self.review_one(around, (slot, thread), computes, now);
        }
    }

    /// Looks at the nice values of the protected threads that ran since the last glance.
    fn glance<A: Actuator>(&mut self, around: &mut Around<'_, A>, now: Instant) {
        let tasks = around.tasks;
        for (slot, thread) in tasks.iter() {
            let ran = thread.estimator.last_heard() + GLANCE * 2 >= now;
            if ran && self.of(slot).is_in_force() {
                self.look_at(around, (slot, thread), now);
            }
        }
    }

    fn review_one<A: Actuator>(
        &mut self,
        around: &mut Around<'_, A>,
        (slot, thread): (Slot, &Thread),
        computes: bool,
        now: Instant,
    ) {
        let application = self.applications.get(thread.party.payer);
        let why = application.and_then(|application| application.protects(now));
        let protection = self.threads.get_mut(slot);
        protection.resumes(now);
        protection.in_vain = application.is_some_and(|application| application.is_in_vain(now));
        let on_trial = thread.estimator.is_on_probation();
        if !protection.is_in_force() {
            if let Some(why) = why.or(on_trial.then_some(BoostWhy::OnTrial)) {
                self.protect(around, slot, why, now);
            }
            return;
        }
        if thread.estimator.last_heard() + QUARTER >= now {
            self.look_at(around, (slot, thread), now);
        }
        if computes && !on_trial {
            self.unprotect(around, slot, BoostWhy::Computes, now);
            self.threads.get_mut(slot).suspend(now);
        } else if why.is_none() && !on_trial {
            self.unprotect(around, slot, BoostWhy::NoBeat, now);
        }
    }

    /// Boosts the thread again if it has set a nice value of 0 or below.
    fn look_at<A: Actuator>(
        &mut self,
        around: &mut Around<'_, A>,
        (slot, thread): (Slot, &Thread),
        now: Instant,
    ) {
        let id = thread.task.id;
        if around.enforcer.boost(id, Some(PROTECTED)).is_err() {
            self.threads.get_mut(slot).state = State::Declined;
            self.tell(around, slot, BoostWhat::BoostEnded, BoostWhy::Changed, now);
        }
    }

    /// Protects the thread, unless it is protected already, may not be, or only computes.
    pub(crate) fn protect<A: Actuator>(
        &mut self,
        around: &mut Around<'_, A>,
        slot: Slot,
        why: BoostWhy,
        now: Instant,
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
        let protection = self.threads.get_mut(slot);
        let is_open = match protection.state {
            State::None => true,
            State::Suspended { .. } => thread.estimator.is_on_probation(),
            State::InForce { .. } | State::Refused | State::Declined => false,
        };
        if !around.protects || !is_open || !may_be {
            return;
        }
        // A thread with a share or a priority of its own may have a reservation all the same.
        if around
            .enforcer
            .boost(thread.task.id, Some(PROTECTED))
            .is_err()
        {
            protection.state = State::Refused;
            return;
        }
        protection.state = State::InForce {
            computed: Span::ZERO,
        };
        let before = std::mem::replace(&mut protection.was_in_force, true);
        self.protected += u64::from(!before);
        self.tell(around, slot, BoostWhat::Boosted, why, now);
    }

    /// Ends the thread's protection.
    pub(crate) fn unprotect<A: Actuator>(
        &mut self,
        around: &mut Around<'_, A>,
        slot: Slot,
        why: BoostWhy,
        now: Instant,
    ) {
        let protection = self.threads.get_mut(slot);
        let Some(thread) = around.tasks.get(slot).filter(|_| protection.is_in_force()) else {
            return;
        };
        let pleading = protection.pleading.as_ref();
        let boost = pleading.and_then(|pleading| pleading.in_force());
        protection.state = match around.enforcer.boost(thread.task.id, boost) {
            Ok(()) => State::None,
            Err(_) => State::Declined,
        };
        self.tell(around, slot, BoostWhat::BoostEnded, why, now);
    }

    /// Notes that a reservation has taken the boost's place, or boosts again if it was refused.
    pub(crate) fn replaced<A: Actuator>(
        &mut self,
        around: &mut Around<'_, A>,
        slot: Slot,
        now: Instant,
    ) {
        let protection = self.threads.get_mut(slot);
        if !protection.is_in_force() {
            return;
        }
        protection.state = State::None;
        if around.enforcer.held(slot).is_some() {
            let (what, why) = (BoostWhat::BoostEnded, BoostWhy::Reserved);
            self.tell(around, slot, what, why, now);
        } else {
            self.protect(around, slot, BoostWhy::KeepsBeat, now);
        }
    }

    fn tell<A>(
        &mut self,
        around: &Around<'_, A>,
        slot: Slot,
        what: BoostWhat,
        why: BoostWhy,
        at: Instant,
    ) {
        if let Some(thread) = around.tasks.get(slot) {
            let boost = Some(PROTECTED);
            let change = match what {
                BoostWhat::Boosted => (None, boost),
                _ => (boost, None),
            };
            self.enter_change(thread.task, what, why, change, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_stands_down_again_and_again_does_so_for_ten_minutes() {
        assert_eq!(stands_down_for(0), Span::from_secs(20));
        assert_eq!(stands_down_for(9), Span::from_secs(640));
    }

    #[test]
    fn a_thread_that_only_computes_loses_its_protection_for_a_minute_at_most() {
        let mut protection = Protection::default();
        (0..9).for_each(|_| protection.suspend(Instant::ZERO));
        protection.resumes(Instant::ZERO + Span::from_ms(59_999));
        assert!(matches!(protection.state, State::Suspended { .. }));
        protection.resumes(Instant::ZERO + Span::from_secs(60));
        assert!(matches!(protection.state, State::None));
    }

    #[test]
    fn a_fiftieth_of_the_time_asleep_is_a_pause() {
        let computes = |slept_ms| {
            let mut protection = Protection {
                state: State::InForce {
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
