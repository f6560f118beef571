//! Releases: a thread gets its former scheduling back. A release that must settle waits until the
//! time that the actuator says. A failed release is tried again, with pauses that double up to 30
//! s, until it succeeds or the thread is gone or taken over.

use onbeat_model::{Actuator, Refusal, Reservation};

use super::state::{Enforcement, PendingRelease};
use super::{Context, Effects, Enforcer, FIRST_RETRY, LONGEST_RETRY};
use crate::Why;
use crate::report::decision::What;
use crate::slots::Slot;
use crate::timer::TimerEvent;

impl<A: Actuator> Enforcer<A> {
    pub(crate) fn withdraw(&mut self, context: &mut Context<'_>, slot: Slot, why: Why) -> Effects {
        let server = self.servers.get(slot);
        if server.fixed.is_some() && why != Why::Finished {
            return Effects::default();
        }
        let is_held = server.held().is_some();
        context.arbiter.withdraw(slot);
        if is_held {
            self.release(context, slot, why)
        } else {
            Effects::default()
        }
    }

    pub(crate) fn release(&mut self, context: &mut Context<'_>, slot: Slot, why: Why) -> Effects {
        let Some(task) = context.task(slot) else {
            return Effects::default();
        };
        context.arbiter.forget_changes(slot);
        let server = self.servers.get_mut(slot);
        let old = server.held();
        match self.actuator.release(task.id) {
            Err(Refusal::Settling { until }) if why != Why::Finished => {
                server.state.back_off(until, Some(why));
                context.timers.set(until, TimerEvent::Retry(task.id));
                Effects::default()
            }
            // If onbeat ends before that, the actuator releases the thread when it is dropped.
            Err(Refusal::Settling { .. }) => {
                let pending = PendingRelease::new(why.clone(), old, context.now);
                self.change(context, slot, |state| state.release_failed(pending));
                let decision = (What::Released, why);
                context.enter(slot, decision, (old, None));
                Effects::default()
            }
            Ok(()) | Err(Refusal::Gone) => self.gave_back(context, slot, why, old),
            Err(refusal @ Refusal::TakenOver { .. }) => self.yielded(context, slot, refusal),
            Err(refusal) => {
                let due = context.now + FIRST_RETRY;
                let pending = PendingRelease::new(why, old, due);
                self.change(context, slot, |state| state.release_failed(pending));
                let decision = (What::Refused, Why::Refused(refusal));
                context.enter(slot, decision, (old, None));
                context.timers.set(due, TimerEvent::RetryRelease(task.id));
                Effects::default()
            }
        }
    }

    pub(crate) fn retry_release(&mut self, context: &mut Context<'_>, slot: Slot) -> Effects {
        let Some(task) = context.task(slot).map(|task| task.id) else {
            return Effects::default();
        };
        let pending = self.servers.get_mut(slot).state.pending_release();
        let Some(pending) = pending.filter(|pending| pending.due <= context.now) else {
            return Effects::default();
        };
        match self.actuator.release(task) {
            Ok(()) | Err(Refusal::Gone) => {
                let (why, old) = (pending.why.clone(), pending.old);
                self.gave_back(context, slot, why, old)
            }
            Err(refusal @ Refusal::TakenOver { .. }) => self.yielded(context, slot, refusal),
            Err(refusal) => {
                pending.tries += 1;
                let pause = FIRST_RETRY.doubled(pending.tries, LONGEST_RETRY);
                pending.due = refusal.retry_at().unwrap_or(context.now + pause);
                context
                    .timers
                    .set(pending.due, TimerEvent::RetryRelease(task));
                Effects::default()
            }
        }
    }

    fn yielded(&mut self, context: &mut Context<'_>, slot: Slot, refusal: Refusal) -> Effects {
        let effects = self.yield_to_other(context, slot, Some(refusal));
        Effects {
            may_end: true,
            ..effects
        }
    }

    fn gave_back(
        &mut self,
        context: &mut Context<'_>,
        slot: Slot,
        why: Why,
        old: Option<Reservation>,
    ) -> Effects {
        self.change(context, slot, Enforcement::released);
        let decision = (What::Released, why);
        context.enter(slot, decision, (old, None));
        Effects {
            may_end: true,
            ..Effects::default()
        }
    }
}
