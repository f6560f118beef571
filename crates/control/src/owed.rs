//! Giving a thread back what it had: at once, when the kernel lets go of it, or, where that failed, ever more rarely until it
//! succeeds or the thread is gone.

use onbeat_model::{Actuator, Instant, Refusal, Reservation};

use crate::controller::{Controller, Due};
use crate::enforce::{FIRST_RETRY, backed_off};
use crate::roster::Slot;
use crate::task::state::{Enforcement, PendingRelease};
use crate::{What, Why};

impl<A: Actuator> Controller<A> {
    pub(crate) fn release(&mut self, slot: Slot, why: Why, now: Instant) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let (task, old) = (thread.task, thread.held());
        thread.hysteresis.forget();
        match self.actuator.release(task.id) {
            Err(Refusal::Settling { until }) if why != Why::Finished => {
                thread.enforcement.back_off(until, Some(why));
                self.timers.set(until, Due::Retry(task.id));
            }
            // What settles yet when onbeat ends, the actuator gives back when it is dropped.
            Err(Refusal::Settling { .. }) => {
                let pending = PendingRelease::new(why.clone(), old, now);
                self.enforced(slot, now, |state| state.release_failed(pending));
                self.enter(task, What::Released, why, (old, None), now);
            }
            Ok(()) | Err(Refusal::Gone) => self.gave_back(slot, why, old, now),
            Err(refusal @ Refusal::TakenOver { .. }) => {
                self.yield_to_other(slot, Some(refusal), now);
                self.dismiss(slot, now);
            }
            Err(refusal) => {
                let due = now + FIRST_RETRY;
                let pending = PendingRelease::new(why, old, due);
                self.enforced(slot, now, |state| state.release_failed(pending));
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
        let task = thread.task.id;
        let pending = thread.enforcement.pending_release();
        let Some(pending) = pending.filter(|pending| pending.due <= now) else {
            return;
        };
        match self.actuator.release(task) {
            Ok(()) | Err(Refusal::Gone) => {
                let (why, old) = (pending.why.clone(), pending.old);
                self.gave_back(slot, why, old, now);
            }
            Err(refusal @ Refusal::TakenOver { .. }) => {
                self.yield_to_other(slot, Some(refusal), now);
                self.dismiss(slot, now);
            }
            Err(refusal) => {
                pending.tries += 1;
                let pause = backed_off(FIRST_RETRY, pending.tries);
                pending.due = refusal.retry_at().unwrap_or(now + pause);
                self.timers.set(pending.due, Due::GiveBack(task));
            }
        }
    }

    fn gave_back(&mut self, slot: Slot, why: Why, old: Option<Reservation>, now: Instant) {
        let Some(thread) = self.thread(slot) else {
            return;
        };
        let task = thread.task;
        self.enforced(slot, now, Enforcement::released);
        self.enter(task, What::Released, why, (old, None), now);
        self.dismiss(slot, now);
    }
}
