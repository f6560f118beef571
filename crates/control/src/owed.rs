//! Giving a thread back what it had: at once, when the kernel lets go of it, or, where that failed, ever more rarely until it
//! succeeds or the thread is gone.

use onbeat_model::{Actuator, Instant, Refusal, Reservation};

use crate::controller::{Controller, Due};
use crate::enforce::{FIRST_RETRY, backed_off};
use crate::roster::Slot;
use crate::thread::Relation;
use crate::{What, Why};

/// A thread has yet to be given back what it had.
#[derive(Clone, Debug)]
pub(crate) struct Owed {
    /// Why it is to have it back.
    why: Why,
    /// What it was to have no longer.
    old: Option<Reservation>,
    /// How often that has failed.
    tries: u32,
    /// When it is tried again. It may have been owed before, and that time is not over.
    due: Instant,
}

impl<A: Actuator> Controller<A> {
    pub(crate) fn release(&mut self, slot: Slot, why: Why, now: Instant) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let (task, old) = (thread.task, thread.held);
        thread.hysteresis.forget();
        match self.actuator.release(task.id) {
            Err(Refusal::Settling { until }) if why != Why::Finished => {
                thread.relation = Relation::Refused;
                thread.postponed = Some(why);
                self.timers.set(until, Due::Retry(task.id));
            }
            // What settles yet when onbeat ends, the actuator gives back when it is dropped.
            Err(Refusal::Settling { .. }) => {
                thread.owed = Some(Owed::new(why.clone(), old, now));
                self.hold(slot, None, now);
                self.enter(task, What::Released, why, (old, None), now);
            }
            Ok(()) | Err(Refusal::Gone) => self.gave_back(slot, why, old, now),
            Err(refusal @ Refusal::TakenOver { .. }) => {
                self.yield_to_other(slot, Some(refusal), now);
                self.dismiss(slot, now);
            }
            Err(refusal) => {
                let due = now + FIRST_RETRY;
                thread.owed = Some(Owed::new(why, old, due));
                self.hold(slot, None, now);
                self.enter(task, What::Refused, Why::Refused(refusal), (old, None), now);
                self.timers.set(due, Due::GiveBack(task.id));
            }
        }
    }

    /// The time to try once more has come.
    pub(crate) fn give_back_again(&mut self, slot: Slot, now: Instant) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let Some(mut owed) = thread.owed.take_if(|owed| owed.due <= now) else {
            return;
        };
        let task = thread.task.id;
        match self.actuator.release(task) {
            Ok(()) | Err(Refusal::Gone) => self.gave_back(slot, owed.why, owed.old, now),
            Err(refusal @ Refusal::TakenOver { .. }) => {
                self.yield_to_other(slot, Some(refusal), now);
                self.dismiss(slot, now);
            }
            Err(refusal) => {
                owed.tries += 1;
                let pause = backed_off(FIRST_RETRY, owed.tries);
                owed.due = refusal.retry_at().unwrap_or(now + pause);
                self.timers.set(owed.due, Due::GiveBack(task));
                thread.owed = Some(owed);
            }
        }
    }

    fn gave_back(&mut self, slot: Slot, why: Why, old: Option<Reservation>, now: Instant) {
        let Some(thread) = self.thread(slot) else {
            return;
        };
        let task = thread.task;
        thread.owed = None;
        self.hold(slot, None, now);
        self.enter(task, What::Released, why, (old, None), now);
        self.dismiss(slot, now);
    }
}

impl Owed {
    const fn new(why: Why, old: Option<Reservation>, due: Instant) -> Self {
        Self {
            why,
            old,
            tries: 0,
            due,
        }
    }
}
