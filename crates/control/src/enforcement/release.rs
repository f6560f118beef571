//! Releases: a thread gets its former scheduling back. A release that must settle waits until the
//! time that the actuator says. A failed release is tried again, with pauses that double up to 30
//! s, until it succeeds or the thread is gone or taken over.

use onbeat_model::{Actuator, Refusal, Reservation};

use super::state::{Enforcement, PendingRelease};
use super::{Books, Effects, Enforcer, FIRST_RETRY, LONGEST_RETRY};
use crate::Why;
use crate::report::decision::What;
use crate::slots::Slot;
use crate::timer::TimerEvent;

impl<A: Actuator> Enforcer<A> {
    pub(crate) fn withdraw(&mut self, books: &mut Books<'_>, slot: Slot, why: Why) -> Effects {
        let server = self.servers.get(slot);
        if server.fixed.is_some() && why != Why::Finished {
            return Effects::default();
        }
        let is_held = server.held().is_some();
        books.arbiter.withdraw(slot);
        if is_held {
            self.release(books, slot, why)
        } else {
            Effects::default()
        }
    }

    pub(crate) fn release(&mut self, books: &mut Books<'_>, slot: Slot, why: Why) -> Effects {
        let Some(task) = books.task(slot) else {
            return Effects::default();
        };
        books.arbiter.forget_changes(slot);
        let server = self.servers.get_mut(slot);
        let old = server.held();
        match self.actuator.release(task.id) {
            Err(Refusal::Settling { until }) if why != Why::Finished => {
                server.state.back_off(until, Some(why));
                books.timers.set(until, TimerEvent::Retry(task.id));
                Effects::default()
            }
            // If onbeat ends before that, the actuator releases the thread when it is dropped.
            Err(Refusal::Settling { .. }) => {
                let pending = PendingRelease::new(why.clone(), old, books.now);
                self.change(books, slot, |state| state.release_failed(pending));
                let decision = (What::Released, why);
                books.enter(slot, decision, (old, None));
                Effects::default()
            }
            Ok(()) | Err(Refusal::Gone) => self.gave_back(books, slot, why, old),
            Err(refusal @ Refusal::TakenOver { .. }) => self.yielded(books, slot, refusal),
            Err(refusal) => {
                let due = books.now + FIRST_RETRY;
                let pending = PendingRelease::new(why, old, due);
                self.change(books, slot, |state| state.release_failed(pending));
                let decision = (What::Refused, Why::Refused(refusal));
                books.enter(slot, decision, (old, None));
                books.timers.set(due, TimerEvent::GiveBack(task.id));
                Effects::default()
            }
        }
    }

    pub(crate) fn give_back_again(&mut self, books: &mut Books<'_>, slot: Slot) -> Effects {
        let Some(task) = books.task(slot).map(|task| task.id) else {
            return Effects::default();
        };
        let pending = self.servers.get_mut(slot).state.pending_release();
        let Some(pending) = pending.filter(|pending| pending.due <= books.now) else {
            return Effects::default();
        };
        match self.actuator.release(task) {
            Ok(()) | Err(Refusal::Gone) => {
                let (why, old) = (pending.why.clone(), pending.old);
                self.gave_back(books, slot, why, old)
            }
            Err(refusal @ Refusal::TakenOver { .. }) => self.yielded(books, slot, refusal),
            Err(refusal) => {
                pending.tries += 1;
                let pause = FIRST_RETRY.doubled(pending.tries, LONGEST_RETRY);
                pending.due = refusal.retry_at().unwrap_or(books.now + pause);
                books.timers.set(pending.due, TimerEvent::GiveBack(task));
                Effects::default()
            }
        }
    }

    fn yielded(&mut self, books: &mut Books<'_>, slot: Slot, refusal: Refusal) -> Effects {
        let effects = self.yield_to_other(books, slot, Some(refusal));
        Effects {
            may_end: true,
            ..effects
        }
    }

    fn gave_back(
        &mut self,
        books: &mut Books<'_>,
        slot: Slot,
        why: Why,
        old: Option<Reservation>,
    ) -> Effects {
        self.change(books, slot, Enforcement::released);
        let decision = (What::Released, why);
        books.enter(slot, decision, (old, None));
        Effects {
            may_end: true,
            ..Effects::default()
        }
    }
}
