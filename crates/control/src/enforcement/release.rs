//! Releases: a thread gets its former scheduling back. One that must settle, or that fails, is in a
//! back-off with what it holds, and is released again when that is over, until it succeeds or the
//! thread is gone or taken over.

use onbeat_model::{Actuator, Refusal, Reservation};

use super::state::Enforcement;
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
        let until = match self.actuator.release(task.id) {
            Ok(()) | Err(Refusal::Gone) => return self.gave_back(context, slot, why, old),
            // The actuator does it when it is dropped, unless it hears that the thread has ended.
            Err(Refusal::Settling { .. }) if why == Why::Finished => {
                let _ = self.gave_back(context, slot, why, old);
                return Effects::default();
            }
            Err(refusal @ Refusal::TakenOver { .. }) => {
                let effects = self.yield_to_other(context, slot, Some(refusal));
                return Effects {
                    may_end: true,
                    ..effects
                };
            }
            Err(Refusal::Settling { until }) => until,
            Err(refusal) => {
                let pause = FIRST_RETRY.doubled(server.refusals, LONGEST_RETRY);
                server.refusals += 1;
                if server.refusals == 1 {
                    let decision = (What::Refused, Why::Refused(refusal));
                    context.enter(slot, decision, (old, None));
                }
                context.now + pause
            }
        };
        server.state.back_off(until, Some(why));
        context.timers.set(until, TimerEvent::Retry(task.id));
        Effects::default()
    }

    fn gave_back(
        &mut self,
        context: &mut Context<'_>,
        slot: Slot,
        why: Why,
        old: Option<Reservation>,
    ) -> Effects {
        self.servers.get_mut(slot).refusals = 0;
        self.change(context, slot, Enforcement::released);
        context.enter(slot, (What::Released, why), (old, None));
        Effects {
            may_end: true,
            ..Effects::default()
        }
    }
}
