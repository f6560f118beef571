//! What the threads of an application have that have no reservation: the largest share that an ordinary
//! thread can have, from the first instruction on and for as long as the application keeps a beat.
//!
//! A program with deadlines is more than its threads with a rhythm. Before any rhythm is known it has to
//! load and to decode its first frame; later its rasterisers, decoders and thread pools hold up the beat
//! when they wait; and a thread that is bound to a CPU cannot be reserved for. A nice value needs no
//! admission, throttles nobody, and is bounded by itself, so many can have it.
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
//! A real-time priority for the first second would show the first frame beside hogs 0.05 to 0.14 s sooner
//! (experiments/programs). But programs limit how long their real-time threads may compute (RLIMIT_RTTIME, 0.2 s in
//! PipeWire's clients), and the kernel ends a program that does not keep to it while it loads.
//!
//! The kernel compares nice values only inside one control group or session. Where the application waits all the same
//! while others have the CPUs, its threads are tried as if they were not protected.
//!
//! A batch program hears no clock once it has been read from the disk: it is ordinary again after its first second, or
//! the CPU time of a program that begins. One that hears a clock, works to capacity, and shows no rhythm for long is a
//! batch program, too.

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

/// The largest share that an ordinary thread can have, in slices shorter than the kernel's own 3 ms: only who has a
/// shorter one preempts a hog at once when it wakes (PREEMPT_SHORT, Linux 6.12).
const PROTECTED: Boost = Boost {
    levels: 20,
    slice: Span::from_ms(1),
};
/// A program loads, and shows its first frame, in less: mpv and Chromium in 0.5 to 0.9 s.
const STARTS: Span = Span::from_ms(1000);
/// One that has had this much CPU time and heard no clock is a batch program, as far as can be told.
const STARTS_WITH: Span = Span::from_ms(800);
/// One that is woken by devices or timers meanwhile may take longer.
const STARTS_WAITING: Span = Span::from_secs(3);
/// Between two glances at the nice values of an application that begins: its threads set their own as they begin, and
/// are behind all others until the boost is put back.
const GLANCE: Span = Span::from_ms(50);
/// For so long after one of its threads was last found to have a rhythm, or it was last heard to have a clock, an
/// application keeps a beat: a player that is late does not sleep until it has caught up.
const KEEPS: Span = Span::from_secs(2);
/// Programs show a rhythm in less, if they have one. One that has not, and uses more than this much of a CPU, is
/// not believed to keep a beat because it hears a clock, as build tools and copiers do.
const UNPROVED: Span = Span::from_secs(20);
const CAPACITY: f64 = 0.9;
/// Who was protected when it began has had the chance that a probation is: the next one is not before its application
/// has this age.
const TRIED_BY_THEN: Span = Span::from_secs(20);
/// A thread that has had this much CPU time with next to no pause only computes, as one that is locked and
/// takes ten periods of 40 ms.
const COMPUTES: Span = Span::from_ms(400);
/// Less sleep than this, as a share of the time, is no pause: a thread that computes meets a lock now and then.
const PAUSES: f64 = 0.02;
const LONGEST_PAUSE: Span = Span::from_secs(60);
/// An application whose threads wait for so much of the time (one for half of it, or two for a quarter), and which uses less than
/// so much of the CPUs, waits for others, if that is so twice in a row.
const WAITS: f64 = 0.5;
const BUSY: f64 = 0.6;
/// For so long its protection is not counted on then.
const IN_VAIN: Span = Span::from_secs(5);
/// A thread whose reservation made it late goes without for so long, and twice as long each time.
const STANDS_DOWN: Span = Span::from_secs(20);
const STANDS_DOWN_LONGEST: Span = Span::from_secs(640);
/// A thread that is not heard of, and has had a share of a CPU between these, waits for one.
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
    /// When all were last looked at.
    looked: Instant,
    /// How many threads were ever protected.
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
    /// The CPU time that its threads have used.
    used: Span,
    /// How often interrupts woke its threads.
    clock: Outside,
    /// When one of its threads was last found to have a rhythm, or when it began.
    proved: Instant,
    keeps_until: Instant,
    recent: Recent,
    /// It waited for others when it was last looked at.
    waited: bool,
    /// Its protection does not help until then.
    in_vain_until: Instant,
}

/// What an application used and waited for since it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    used: Span,
    /// For how long protected threads were ready and did not run.
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

    /// It has been looked at for so long, on so many CPUs: whether it has a clock, and whether its threads wait
    /// although it does not use the CPUs up. While a program begins, its threads wait for each other: trials of a dozen of
    /// them at once kept Chromium's first frame back by 0.15 s.
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

    /// Whether it is protected because it has just begun.
    fn begins(&self, now: Instant) -> bool {
        let age = now.since(self.began);
        (age < STARTS && self.used < STARTS_WITH)
            || (age < STARTS_WAITING && self.clock.heard_lately(now))
    }

    /// Why its threads are protected at `now`, if they are.
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
    /// How often it was taken from the thread for computing.
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
    /// The actuator refused, or the thread had a share of its own.
    Refused,
    /// The thread was given a smaller share meanwhile, by itself or by somebody else.
    Declined,
}

/// A thread's CPU time, as far as it was charged to its application. A burst is told at its end, which may be
/// long after it began; what it has used by the time of a look is charged at the look.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// All CPU time at the end of the last burst; none before the first look.
    told: Option<Span>,
    /// What of the burst that goes on is charged already.
    ahead: Span,
    /// When the last burst ended.
    blocked: Option<Instant>,
    recent: Did,
}

/// What a thread did since it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Did {
    used: Span,
    slept: Span,
}

impl Account {
    /// A burst ended: what is to be charged for it.
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

    /// The thread has used `total` in all: what of that is to be charged, and what it did since the last look.
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

    /// Others keep its application waiting, or it cannot be protected at all.
    pub(crate) const fn is_in_vain(&self) -> bool {
        self.in_vain || matches!(self.state, State::Refused)
    }

    /// It is in force, and others do not keep the application waiting all the same.
    pub(crate) const fn helps(&self) -> bool {
        self.is_in_force() && !self.in_vain
    }

    /// Somebody wants it to have a smaller share than others have: that it starves is no reason for a trial.
    pub(crate) const fn is_declined(&self) -> bool {
        matches!(self.state, State::Declined)
    }

    /// The thread did this since the last look, so long ago: whether it only computes.
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
    /// Whether it is for the application's protection, as far as it is up to the thread.
    fn may_be_protected(&self) -> bool {
        self.enforcement.is_clean()
            && self.fixed.is_none()
            && !self.unheard
            && !self.path.is_partner()
            && !self.enforcement.is_over()
    }
}

impl<A: Actuator> Controller<A> {
    /// A thread was begun, or is tracked from now on.
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

    /// Takes in what an application's thread used, and whether an interrupt woke it.
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

    /// Whether the thread's application has been protected since it began, which helps, and is not old enough for
    /// a probation besides.
    pub(crate) fn is_tried_by_protection(&self, slot: Slot, now: Instant) -> bool {
        let thread = self.tasks.get(slot);
        thread.is_some_and(|thread| {
            let application = self.boosting.applications.by_payer.get(&thread.party.payer);
            let is_young = application.is_some_and(|a| now.since(a.began) < TRIED_BY_THEN);
            is_young && thread.protection.helps()
        })
    }

    /// A thread that is served as one of its application's besides gives its reservation back if that is what makes it late,
    /// as a worker's in a pool is whose jobs are nothing or long; true if it does. It is tried again ever more rarely.
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
        // A release that has to wait has a back-off of its own; the thread may ask again after it.
        if thread.enforcement.is_clean() {
            thread.enforcement.back_off(now + pause, None);
            self.timers
                .set(now + pause, TimerEvent::Retry(thread.task.id));
        }
        self.protect(slot, BoostWhy::KeepsBeat, now);
        true
    }

    /// Looks at all applications, and at all their threads.
    pub(crate) fn review_protection(
        &mut self,
        now: Instant,
        executed: &mut dyn FnMut(TaskId) -> Option<Span>,
    ) {
        // Of a crowd more rarely: each look at a thread is some system calls.
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

    /// Looks at the nice values of those threads of an application that begins that ran of late.
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

    /// A thread that runs may have set its nice value: if not to one above 0, it has the boost again.
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

    /// Protects the thread, if it may be, is not yet, and does not only compute.
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
            // Who has a share or a priority of its own needs no other, and may be reserved for.
            Err(_) => thread.protection.state = State::Refused,
        }
    }

    /// The thread has what it would have without.
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

    /// A reservation was set, which takes the place of a boost by itself, or was refused: then the thread
    /// has its boost again.
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
