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

pub(crate) mod boost;

use std::collections::HashMap;

use onbeat_model::{Actuator, Boost, Burst, Instant, Span, TaskId};

use crate::Why;
use crate::estimation::clock::{Outside, QUARTER};
use crate::estimation::lock::Lock;
use crate::estimation::starvation::FIRST_PAUSE;
use crate::run_loop::Controller;
use crate::task::Thread;
use crate::task::table::Slot;
use crate::timer::TimerEvent;
use boost::{BoostWhat, BoostWhy, Boosts};

/// The largest share of an ordinary thread. The slice is shorter than the kernel's 3 ms, because
/// only a thread with a shorter slice preempts a hog at its wakeup (PREEMPT_SHORT, Linux 6.12).
const PROTECTED: Boost = Boost {
    levels: 20,
    slice: Span::from_ms(1),
};
/// A program loads, and shows its first frame, in less: mpv and Chromium in 0.5 to 0.9 s.
const STARTS: Span = Span::from_ms(1000);
/// A program that has used this much CPU time and heard no clock counts as a batch program.
const STARTS_WITH: Span = Span::from_ms(800);
/// The limit for a program that devices or timers wake meanwhile.
const STARTS_WAITING: Span = Span::from_secs(3);
/// The time between two looks at the nice values of an application that begins. Its threads set
/// values of their own as they begin, and wait behind all others until they are boosted again.
const GLANCE: Span = Span::from_ms(50);
/// An application keeps a beat for this long after its last rhythm or clock: a late player does not
/// sleep until it has caught up.
const KEEPS: Span = Span::from_secs(2);
/// A program with a rhythm shows it in less. Without one, and with `CAPACITY` of a CPU in use, the
/// clock that it hears does not count: build tools and copiers hear one.
const UNPROVED: Span = Span::from_secs(20);
const CAPACITY: f64 = 0.9;
/// Protection at the beginning is as good a chance as a probation. A thread's first probation comes
/// when its application has this age.
const TRIED_BY_THEN: Span = Span::from_secs(20);
/// A thread that has used this much CPU time without a pause only computes: ten periods of 40 ms.
const COMPUTES: Span = Span::from_ms(400);
/// A pause is at least this share of the time: a thread that computes sleeps at locks now and then.
const PAUSES: f64 = 0.02;
const LONGEST_PAUSE: Span = Span::from_secs(60);
/// Protection is in vain where, twice in a row, the application's threads wait for at least `WAITS`
/// of the time in all and use less than `BUSY` of the CPUs.
const WAITS: f64 = 0.5;
const BUSY: f64 = 0.6;
/// How long protection counts as being in vain.
const IN_VAIN: Span = Span::from_secs(5);
/// The first pause of a thread whose reservation made it late. Each further one is twice as long.
const STANDS_DOWN: Span = Span::from_secs(20);
const STANDS_DOWN_LONGEST: Span = Span::from_secs(640);
/// A thread without an event whose share of a CPU is between these waits for a CPU.
const AWAKE: f64 = 0.002;
const FED: f64 = 0.7;

/// All that is done for threads without a reservation.
#[derive(Debug, Default)]
pub(crate) struct Boosting {
    pub(crate) applications: Applications,
    pub(crate) boosts: Boosts,
}

/// All applications, by payer.
#[derive(Debug, Default)]
pub(crate) struct Applications {
    by_payer: HashMap<u32, Application>,
    /// Time of the last review of all applications.
    looked: Instant,
    /// Number of threads that were ever protected.
    pub(crate) protected: u64,
}

impl Applications {
    fn any_begins(&self, now: Instant) -> bool {
        self.by_payer
            .values()
            .any(|application| application.begins(now))
    }
}

/// Threads that are charged to one payer.
#[derive(Debug)]
struct Application {
    began: Instant,
    /// CPU time of its threads.
    used: Span,
    /// Wakeups of its threads by interrupts.
    clock: Outside,
    /// Time of the last rhythm of one of its threads, or of its beginning.
    proved: Instant,
    keeps_until: Instant,
    recent: Recent,
    /// It waited for others at the last review.
    waited: bool,
    /// Until then, its protection counts as being in vain.
    in_vain_until: Instant,
}

/// An application's CPU time and waiting since the last review.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    used: Span,
    /// Time in which protected threads were ready and did not run.
    waited: Span,
}

impl Application {
    fn new(began: Instant) -> Self {
        Self {
            began,
            used: Span::ZERO,
            clock: Outside::default(),
            proved: began,
            keeps_until: Instant::ZERO,
            recent: Recent::default(),
            waited: false,
            in_vain_until: Instant::ZERO,
        }
    }

    fn charge(&mut self, used: Span) {
        self.used += used;
        self.recent.used += used;
    }

    fn wait(&mut self, waited: Span) {
        self.recent.waited += waited.min(QUARTER);
    }

    /// One of its threads has a rhythm.
    fn prove(&mut self, now: Instant) {
        self.proved = now;
        self.keeps_until = now + KEEPS;
    }

    /// Finds out whether the application has a clock, and whether its protection is in vain, from
    /// what it did in the last `over` on `cpus` CPUs. A program that begins is never in vain,
    /// because its threads wait for each other. Probations of a dozen of them at once delayed
    /// Chromium's first frame by 0.15 s.
    fn review(&mut self, now: Instant, over: Span, cpus: u32) {
        let Recent { used, waited } = std::mem::take(&mut self.recent);
        let is_batch = now.since(self.proved) >= UNPROVED && used.ratio(over) >= CAPACITY;
        if self.clock.is_steady(now) && !is_batch {
            self.keeps_until = now + KEEPS;
        }
        let waits = waited.ratio(over) >= WAITS && used.ratio(over) < f64::from(cpus) * BUSY;
        if waits && self.waited && now.since(self.began) >= STARTS_WAITING {
            self.in_vain_until = now + IN_VAIN;
        }
        self.waited = waits;
    }

    fn is_in_vain(&self, now: Instant) -> bool {
        now < self.in_vain_until
    }

    /// True if it is protected because it has just begun.
    fn begins(&self, now: Instant) -> bool {
        let age = now.since(self.began);
        (age < STARTS && self.used < STARTS_WITH)
            || (age < STARTS_WAITING && self.clock.heard_lately(now))
    }

    /// The reason why its threads are protected at `now`.
    fn protects(&self, now: Instant) -> Option<BoostWhy> {
        if self.begins(now) {
            Some(BoostWhy::Starts)
        } else {
            (now < self.keeps_until).then_some(BoostWhy::KeepsBeat)
        }
    }
}

/// How one thread is protected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Protection {
    state: State,
    account: Account,
    in_vain: bool,
    was_in_force: bool,
    /// Number of times that the thread lost it for computing.
    suspensions: u32,
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
    pub(crate) const fn is_in_force(&self) -> bool {
        matches!(self.state, State::InForce { .. })
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
        *computed >= COMPUTES
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

impl Thread {
    /// True if nothing about the thread itself speaks against its protection.
    fn may_be_protected(&self) -> bool {
        self.enforcement.is_clean()
            && self.fixed.is_none()
            && !self.unheard
            && !self.path.is_partner()
            && !self.enforcement.is_over()
    }
}

impl<A: Actuator> Controller<A> {
    /// Protects a thread that is tracked from now on, if its application is protected.
    pub(crate) fn protect_new(&mut self, slot: Slot, now: Instant) {
        if !self.settings.protects {
            return;
        }
        let Some(payer) = self.tasks.get_mut(slot).map(|thread| thread.party.payer) else {
            return;
        };
        if self.boosting.applications.by_payer.is_empty() {
            self.boosting.applications.looked = now;
            self.timers.set(now + QUARTER, TimerEvent::Protection);
        }
        let application = self.boosting.applications.by_payer.entry(payer);
        let application = application.or_insert_with(|| Application::new(now));
        if let Some(why) = application.protects(now) {
            self.protect(slot, why, now);
        }
    }

    /// Charges a burst to its application, and counts a wakeup by an interrupt.
    pub(crate) fn hear_application(&mut self, slot: Slot, burst: &Burst) {
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let Some(application) = self
            .boosting
            .applications
            .by_payer
            .get_mut(&thread.party.payer)
        else {
            return;
        };
        application.charge(thread.protection.account.burst(burst));
        if thread.protection.is_in_force() {
            application.wait(burst.response() - burst.executed);
        }
        if burst.waker == 0 {
            application.clock.heard(burst.woke);
        }
    }

    /// True if the thread's protection helps, and its application is too young for a probation.
    pub(crate) fn is_tried_by_protection(&self, slot: Slot, now: Instant) -> bool {
        let thread = self.tasks.get(slot);
        thread.is_some_and(|thread| {
            let application = self.boosting.applications.by_payer.get(&thread.party.payer);
            let is_young = application.is_some_and(|a| now.since(a.began) < TRIED_BY_THEN);
            is_young && thread.protection.helps()
        })
    }

    /// Releases the reservation of a thread whose budget makes it late, such as a pool's worker
    /// with jobs that are nothing or long; true if it does. The application's protection serves it
    /// meanwhile. The pause before its next reservation doubles each time.
    pub(crate) fn stand_down(&mut self, slot: Slot, now: Instant) -> bool {
        let Some(thread) = self.tasks.get_mut(slot) else {
            return false;
        };
        let is_served_besides =
            self.settings.protects && !thread.path.is_partner() && !thread.protection.is_in_vain();
        if !is_served_besides || thread.held().is_none() {
            return false;
        }
        let lock = thread.estimation.lock_mut();
        let own = lock.filter(|lock| !lock.is_declared() && !lock.is_derived());
        let Some((late, of, times)) = own.and_then(Lock::take_held_back) else {
            return false;
        };
        let pause = STANDS_DOWN.doubled(times, STANDS_DOWN_LONGEST);
        self.withdraw(slot, Why::HeldBack { late, of, pause }, now);
        let Some(thread) = self.tasks.get_mut(slot) else {
            return true;
        };
        // A pending release has a back-off of its own, and the thread may ask again after it.
        if thread.enforcement.is_clean() {
            thread.enforcement.back_off(now + pause, None);
            self.timers
                .set(now + pause, TimerEvent::Retry(thread.task.id));
        }
        self.protect(slot, BoostWhy::KeepsBeat, now);
        true
    }

    /// Reviews all applications and their threads.
    pub(crate) fn review_protection(
        &mut self,
        now: Instant,
        executed: &mut dyn FnMut(TaskId) -> Option<Span>,
    ) {
        // A crowd is reviewed more rarely, because each thread costs some system calls.
        let pause = QUARTER * self.crowd();
        let begins = self.boosting.applications.any_begins(now);
        let next = if begins { GLANCE } else { pause };
        self.timers.set(now + next, TimerEvent::Protection);
        let over = now.since(self.boosting.applications.looked);
        if begins && over < pause {
            self.glance(now);
            return;
        }
        self.boosting.applications.looked = now;
        let mut computing = Vec::new();
        for (slot, thread) in self.tasks.iter_mut() {
            let Some(application) = self
                .boosting
                .applications
                .by_payer
                .get_mut(&thread.party.payer)
            else {
                continue;
            };
            if thread.is_locked() && !thread.path.is_partner() {
                application.prove(now);
            }
            if !thread.protection.is_in_force() {
                continue;
            }
            let Some(total) = executed(thread.task.id) else {
                continue;
            };
            let (charge, did) = thread.protection.account.look(total);
            application.charge(charge);
            let is_silent = thread.last_heard + over < now;
            if is_silent && (AWAKE..FED).contains(&did.used.ratio(over)) {
                application.wait(over - did.used);
            }
            if thread.protection.computes(did, over) {
                computing.push(slot);
            }
        }
        for application in self.boosting.applications.by_payer.values_mut() {
            application.review(now, over, self.enforcer.capacity().cpus);
        }
        for slot in self.tasks.slots() {
            self.review_one(slot, computing.binary_search(&slot).is_ok(), now);
        }
    }

    /// Looks at the nice values of the protected threads that ran since the last glance.
    fn glance(&mut self, now: Instant) {
        for slot in self.tasks.slots() {
            let Some(thread) = self.tasks.get(slot) else {
                continue;
            };
            let ran = thread.last_heard + GLANCE * 2 >= now;
            if ran && thread.protection.is_in_force() {
                self.look_at_protection(slot, now);
            }
        }
    }

    fn review_one(&mut self, slot: Slot, computes: bool, now: Instant) {
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        thread.protection.resumes(now);
        let application = self.boosting.applications.by_payer.get(&thread.party.payer);
        let why = application.and_then(|application| application.protects(now));
        thread.protection.in_vain = application.is_some_and(|a| a.is_in_vain(now));
        let on_trial = thread.is_on_probation();
        if !thread.protection.is_in_force() {
            if let Some(why) = why.or(on_trial.then_some(BoostWhy::OnTrial)) {
                self.protect(slot, why, now);
            }
            return;
        }
        if thread.last_heard + QUARTER >= now {
            self.look_at_protection(slot, now);
        }
        if computes && !on_trial {
            self.unprotect(slot, BoostWhy::Computes, now);
            if let Some(thread) = self.tasks.get_mut(slot) {
                thread.protection.suspend(now);
            }
        } else if why.is_none() && !on_trial {
            self.unprotect(slot, BoostWhy::NoBeat, now);
        }
    }

    /// Boosts the thread again if it has set a nice value of 0 or below.
    fn look_at_protection(&mut self, slot: Slot, now: Instant) {
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        if self
            .enforcer
            .boost(thread.task.id, Some(PROTECTED))
            .is_err()
        {
            thread.protection.state = State::Declined;
            self.tell_protection(slot, BoostWhat::BoostEnded, BoostWhy::Changed, now);
        }
    }

    /// Protects the thread, unless it is protected already, may not be, or only computes.
    pub(crate) fn protect(&mut self, slot: Slot, why: BoostWhy, now: Instant) {
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let on_trial = thread.is_on_probation();
        let is_open = match thread.protection.state {
            State::None => true,
            State::Suspended { .. } => on_trial,
            State::InForce { .. } | State::Refused | State::Declined => false,
        };
        if !self.settings.protects || !is_open || !thread.may_be_protected() {
            return;
        }
        match self.enforcer.boost(thread.task.id, Some(PROTECTED)) {
            Ok(()) => {
                thread.protection.state = State::InForce {
                    computed: Span::ZERO,
                };
                let before = std::mem::replace(&mut thread.protection.was_in_force, true);
                self.boosting.applications.protected += u64::from(!before);
                self.tell_protection(slot, BoostWhat::Boosted, why, now);
            }
            // A thread with a share or a priority of its own may have a reservation all the same.
            Err(_) => thread.protection.state = State::Refused,
        }
    }

    /// Ends the thread's protection.
    pub(crate) fn unprotect(&mut self, slot: Slot, why: BoostWhy, now: Instant) {
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        if !thread.protection.is_in_force() {
            return;
        }
        let pleaded = thread.pleading.as_ref();
        let boost = pleaded.and_then(|pleading| pleading.in_force());
        thread.protection.state = match self.enforcer.boost(thread.task.id, boost) {
            Ok(()) => State::None,
            Err(_) => State::Declined,
        };
        self.tell_protection(slot, BoostWhat::BoostEnded, why, now);
    }

    /// Notes that a reservation has taken the boost's place, or boosts again if it was refused.
    pub(crate) fn protection_replaced(&mut self, slot: Slot, now: Instant) {
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        if !thread.protection.is_in_force() {
            return;
        }
        thread.protection.state = State::None;
        let is_reserved = thread.held().is_some();
        if is_reserved {
            self.tell_protection(slot, BoostWhat::BoostEnded, BoostWhy::Reserved, now);
        } else {
            self.protect(slot, BoostWhy::KeepsBeat, now);
        }
    }

    fn tell_protection(&mut self, slot: Slot, what: BoostWhat, why: BoostWhy, at: Instant) {
        let Some(task) = self.tasks.get_mut(slot).map(|thread| thread.task) else {
            return;
        };
        let boost = Some(PROTECTED);
        let change = match what {
            BoostWhat::Boosted => (None, boost),
            _ => (boost, None),
        };
        self.tell(task, what, why, change, at);
    }
}
