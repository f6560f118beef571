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
//! The kernel compares nice values only inside one control group or session. Where the application waits all the same
//! while others have the CPUs, its threads are tried as if they were not protected.
//!
//! A program that hears no clock, a batch program, is ordinary again after its first second, or the CPU time of a
//! program that begins.

use std::collections::HashMap;

use onbeat_model::{Actuator, Boost, Burst, Instant, Span, TaskId};

use crate::boosts::{BoostEntry, BoostWhat, BoostWhy};
use crate::clock::{Outside, QUARTER};
use crate::controller::{Controller, Due};
use crate::roster::Slot;
use crate::starving::pause_after;
use crate::thread::{Relation, Thread};

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
/// One that waits for devices and timers meanwhile may take longer.
const STARTS_WAITING: Span = Span::from_secs(3);
/// For so long after it was last heard to keep one, an application keeps a beat.
const KEEPS: Span = Span::from_secs(2);
/// A thread that has had this much CPU time without a pause only computes, as one that is locked and
/// takes ten periods of 40 ms.
const COMPUTES: Span = Span::from_ms(400);
const LONGEST_PAUSE: Span = Span::from_secs(60);
/// An application whose threads wait for so much of the time (one for half of it, or two for a quarter), and which uses less than
/// so much of the CPUs, waits for others.
const WAITS: f64 = 0.5;
const BUSY: f64 = 0.6;
/// For so long its protection is not counted on then.
const IN_VAIN: Span = Span::from_secs(5);

/// All applications, by payer.
#[derive(Debug, Default)]
pub(crate) struct Applications {
    by_payer: HashMap<u32, Application>,
    /// How many threads were ever protected.
    pub(crate) protected: u64,
}

/// Threads that are charged to one payer.
#[derive(Debug)]
struct Application {
    began: Instant,
    /// The CPU time that its threads have used in bursts.
    used: Span,
    /// How often interrupts woke its threads.
    clock: Outside,
    keeps_until: Instant,
    recent: Recent,
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
            clock: Outside::none(),
            keeps_until: Instant::ZERO,
            recent: Recent::default(),
            in_vain_until: Instant::ZERO,
        }
    }

    /// A look's time has passed on so many CPUs: whether its threads wait although it does not use the CPUs up.
    fn review(&mut self, now: Instant, cpus: u32) {
        let Recent { used, waited } = std::mem::take(&mut self.recent);
        if waited >= QUARTER.scale(WAITS) && used < QUARTER.scale(f64::from(cpus) * BUSY) {
            self.in_vain_until = now + IN_VAIN;
        }
    }

    /// Why its threads are protected at `now`, if they are.
    fn protects(&self, now: Instant) -> Option<BoostWhy> {
        let age = now.since(self.began);
        let starts = (age < STARTS && self.used < STARTS_WITH)
            || (age < STARTS_WAITING && self.clock.heard_lately(now));
        if starts {
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
        /// All CPU time of the thread when it was last looked at, if it had not paused before.
        executed: Option<Span>,
        computed: Span,
    },
    Suspended {
        until: Instant,
    },
    /// The actuator refused, or somebody gave the thread a share of its own.
    Refused,
}

impl Protection {
    pub(crate) const fn is_in_force(&self) -> bool {
        matches!(self.state, State::InForce { .. })
    }

    pub(crate) const fn is_in_vain(&self) -> bool {
        self.in_vain
    }

    /// It is in force, and others do not keep the application waiting all the same.
    pub(crate) const fn helps(&self) -> bool {
        self.is_in_force() && !self.in_vain
    }

    /// The thread has used `executed` of CPU time in all, and has not been heard since the last look if it
    /// `is_silent`: whether it only computes.
    fn computes(&mut self, executed: Option<Span>, is_silent: bool) -> bool {
        let State::InForce {
            executed: before,
            computed,
        } = &mut self.state
        else {
            return false;
        };
        if let (true, Some(before), Some(now)) = (is_silent, *before, executed) {
            *computed += now - before;
        } else {
            *computed = Span::ZERO;
        }
        *before = executed;
        *computed >= COMPUTES
    }

    fn suspend(&mut self, now: Instant) {
        let pause = pause_after(self.suspensions).min(LONGEST_PAUSE);
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
        self.held.is_none()
            && self.owed.is_none()
            && self.fixed.is_none()
            && !self.unheard
            && !self.path.is_partner()
            && matches!(self.relation, Relation::Open | Relation::Refused)
    }
}

impl<A: Actuator> Controller<A> {
    /// A thread was begun, or is tracked from now on.
    pub(crate) fn protect_new(&mut self, slot: Slot, now: Instant) {
        if !self.settings.protects {
            return;
        }
        let Some(payer) = self.thread(slot).map(|thread| thread.party.payer) else {
            return;
        };
        if self.applications.by_payer.is_empty() {
            self.timers.set(now + QUARTER, Due::Protection);
        }
        let application = self.applications.by_payer.entry(payer);
        let application = application.or_insert_with(|| Application::new(now));
        if let Some(why) = application.protects(now) {
            self.protect(slot, why, now);
        }
    }

    /// Takes in what an application's thread used, and whether an interrupt woke it.
    pub(crate) fn hear_application(&mut self, slot: Slot, burst: &Burst) {
        let Some(thread) = self.threads.get(slot).and_then(Option::as_ref) else {
            return;
        };
        if let Some(application) = self.applications.by_payer.get_mut(&thread.party.payer) {
            application.used += burst.executed;
            application.recent.used += burst.executed;
            if thread.protection.is_in_force() {
                application.recent.waited += burst.response() - burst.executed;
            }
            if burst.waker == 0 {
                application.clock.heard(burst.woke);
            }
        }
    }

    /// Looks at all applications, and at all their threads.
    pub(crate) fn review_protection(
        &mut self,
        now: Instant,
        executed: &mut dyn FnMut(TaskId) -> Option<Span>,
    ) {
        self.timers.set(now + QUARTER, Due::Protection);
        for thread in self.threads.iter().flatten() {
            if thread.is_kept()
                && !thread.path.is_partner()
                && let Some(application) = self.applications.by_payer.get_mut(&thread.party.payer)
            {
                application.keeps_until = now + KEEPS;
            }
        }
        for application in self.applications.by_payer.values_mut() {
            if application.clock.is_steady(now) {
                application.keeps_until = now + KEEPS;
            }
            application.review(now, self.capacity.cpus);
        }
        for slot in 0..self.threads.len() {
            self.review_one(slot, now, executed);
        }
    }

    fn review_one(
        &mut self,
        slot: Slot,
        now: Instant,
        executed: &mut dyn FnMut(TaskId) -> Option<Span>,
    ) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        thread.protection.resumes(now);
        let application = self.applications.by_payer.get(&thread.party.payer);
        let why = application.and_then(|application| application.protects(now));
        thread.protection.in_vain = application.is_some_and(|a| now < a.in_vain_until);
        let on_trial = thread.is_on_trial();
        if !thread.protection.is_in_force() {
            if let Some(why) = why.or(on_trial.then_some(BoostWhy::OnTrial)) {
                self.protect(slot, why, now);
            }
            return;
        }
        let is_silent = thread.last_heard + QUARTER < now;
        let executed = is_silent.then(|| executed(thread.task.id)).flatten();
        let computes = thread.protection.computes(executed, is_silent) && !on_trial;
        if !is_silent {
            self.look_at_protection(slot, now);
        }
        if computes {
            self.unprotect(slot, BoostWhy::Computes, now);
            if let Some(thread) = self.thread(slot) {
                thread.protection.suspend(now);
            }
        } else if why.is_none() && !on_trial {
            self.unprotect(slot, BoostWhy::NoBeat, now);
        }
    }

    /// A thread that runs may have set its nice value: if to one below 0, it has the boost again.
    fn look_at_protection(&mut self, slot: Slot, now: Instant) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        if self
            .actuator
            .boost(thread.task.id, Some(PROTECTED))
            .is_err()
        {
            thread.protection.state = State::Refused;
            self.tell_protection(slot, BoostWhat::BoostEnded, BoostWhy::Changed, now);
        }
    }

    /// Protects the thread, if it may be, is not yet, and does not only compute.
    pub(crate) fn protect(&mut self, slot: Slot, why: BoostWhy, now: Instant) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let on_trial = thread.is_on_trial();
        let is_open = match thread.protection.state {
            State::None => true,
            State::Suspended { .. } => on_trial,
            State::InForce { .. } | State::Refused => false,
        };
        if !self.settings.protects || !is_open || !thread.may_be_protected() {
            return;
        }
        match self.actuator.boost(thread.task.id, Some(PROTECTED)) {
            Ok(()) => {
                thread.protection.state = State::InForce {
                    executed: None,
                    computed: Span::ZERO,
                };
                let before = std::mem::replace(&mut thread.protection.was_in_force, true);
                self.applications.protected += u64::from(!before);
                self.tell_protection(slot, BoostWhat::Boosted, why, now);
            }
            // Who has a share or a priority of its own needs no other, and may be reserved for.
            Err(_) => thread.protection.state = State::Refused,
        }
    }

    /// The thread has what it would have without.
    pub(crate) fn unprotect(&mut self, slot: Slot, why: BoostWhy, now: Instant) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        if !thread.protection.is_in_force() {
            return;
        }
        let pleaded = thread.pleading.as_ref();
        let boost = pleaded.and_then(|pleading| pleading.in_force());
        thread.protection.state = match self.actuator.boost(thread.task.id, boost) {
            Ok(()) => State::None,
            Err(_) => State::Refused,
        };
        self.tell_protection(slot, BoostWhat::BoostEnded, why, now);
    }

    /// A reservation was set, which takes the place of a boost by itself, or was refused: then the thread
    /// has its boost again.
    pub(crate) fn protection_replaced(&mut self, slot: Slot, now: Instant) {
        let Some(thread) = self.thread(slot) else {
            return;
        };
        if !thread.protection.is_in_force() {
            return;
        }
        thread.protection.state = State::None;
        let is_reserved = thread.held.is_some();
        if is_reserved {
            self.tell_protection(slot, BoostWhat::BoostEnded, BoostWhy::Reserved, now);
        } else {
            self.protect(slot, BoostWhy::KeepsBeat, now);
        }
    }

    fn tell_protection(&mut self, slot: Slot, what: BoostWhat, why: BoostWhy, at: Instant) {
        let Some(task) = self.thread(slot).map(|thread| thread.task) else {
            return;
        };
        let boost = Some(PROTECTED);
        let (old_boost, new_boost) = match what {
            BoostWhat::Boosted => (None, boost),
            _ => (boost, None),
        };
        self.boosts.enter(BoostEntry {
            at,
            task,
            what,
            why,
            old_boost,
            new_boost,
        });
    }
}
