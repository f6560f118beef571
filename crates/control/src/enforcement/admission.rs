//! Refusals for lack of room: other programs hold reservations, or a thread's owner may have no
//! more.

use onbeat_model::{Actuator, Bandwidth, Refusal, Reservation};

use super::{Context, Effects, Enforcer, FIRST_RETRY, LONGEST_RETRY, as_counted};
use crate::Why;
use crate::allocation::{self, bandwidth};
use crate::report::decision::What;
use crate::slots::Slot;
use crate::timer::TimerEvent;

/// The shares of a reservation to try in turn if the kernel has no room for it, each a system call.
const STEPS_DOWN: [f64; 4] = [0.85, 0.7, 0.5, 0.3];

/// The limit that the kernel's refusals have shown. It holds until the next attempt to exceed it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Admission {
    total: Option<Bandwidth>,
    pub(super) tries: u32,
}

impl<A: Actuator> Enforcer<A> {
    pub(crate) const fn admitted(&self) -> Option<Bandwidth> {
        self.admission.total
    }

    pub(crate) const fn forget_admitted(&mut self) {
        self.admission.total = None;
    }

    pub(crate) const fn tries(&self) -> u32 {
        self.admission.tries
    }

    /// An arbitration is over; before it, admission had failed `tries_before` times.
    pub(crate) const fn arbitrated(&mut self, tries_before: u32) {
        if self.admission.total.is_none() && self.admission.tries == tries_before {
            self.admission.tries = 0;
        }
    }

    /// The kernel has no room for `target`: takes as much as it admits, and from then on shares out
    /// no more than that, until there may be room again.
    pub(super) fn step_down(
        &mut self,
        context: &mut Context<'_>,
        slot: Slot,
        target: Reservation,
        why: Why,
    ) {
        let Some(task) = context.task(slot) else {
            return;
        };
        let held = self.held(slot);
        for step in STEPS_DOWN {
            let runtime = target
                .runtime()
                .scale(step)
                .max(self.capacity.shortest_runtime);
            let Ok(less) = Reservation::new(runtime, target.deadline(), target.period()) else {
                break;
            };
            if less.bandwidth() <= bandwidth(held) {
                break;
            }
            let counted = as_counted(less, context.scale, &self.capacity);
            if self.actuator.reserve(task.id, counted).is_ok() {
                self.reserved(context, slot, less, why);
                break;
            }
        }
        self.admission.total = Some(self.in_force);
        context.arbiter.look_at_all();
        let pause = FIRST_RETRY.doubled(self.admission.tries, LONGEST_RETRY);
        self.admission.tries += 1;
        context
            .timers
            .set(context.now + pause, TimerEvent::RetryAdmission);
    }

    /// Holds the requests that changed against what their threads' owners may have, before other
    /// requests are compressed for them. Returns what that means for threads whose requests were
    /// taken back.
    pub(crate) fn keep_within_quotas(&mut self, context: &mut Context<'_>) -> Vec<(Slot, Effects)> {
        let mut withdrawn = Vec::new();
        for slot in context.arbiter.changed().to_vec() {
            let server = self.servers.get(slot);
            let (held, is_first) = (server.held(), server.ceiling.is_none());
            let wanted = context.arbiter.wanted(slot);
            let wanted = wanted.filter(|_| server.fixed.is_none());
            let Some((wanted, task)) = wanted.zip(context.task(slot)) else {
                continue;
            };
            let counted = as_counted(wanted, context.scale, &self.capacity);
            let Err(refusal) = self.actuator.admits(task.id, counted) else {
                continue;
            };
            let Refusal::OverQuota { left, .. } = refusal else {
                continue;
            };
            if is_first {
                let decision = (What::Refused, Why::Refused(refusal));
                context.enter(slot, decision, (held, Some(wanted)));
            }
            let (_, effects) = self.ask_for_less(context, slot, (wanted, left));
            withdrawn.push((slot, effects));
        }
        withdrawn
    }

    /// The thread's owner may have no more than `left` for it: the thread asks for that much, until
    /// it is time to ask for more again. No other thread gets less for it.
    pub(super) fn cap(
        &mut self,
        context: &mut Context<'_>,
        slot: Slot,
        target: (Reservation, Bandwidth),
        why: Why,
    ) -> Effects {
        let (less, effects) = self.ask_for_less(context, slot, target);
        let Some(less) = less else {
            return effects;
        };
        let refusals = self.servers.get(slot).refusals;
        let raises = less.bandwidth() > bandwidth(self.held(slot));
        if raises && self.put_in_force(context, slot, less).is_ok() {
            self.reserved(context, slot, less, why);
            // It is refused more than that.
            self.servers.get_mut(slot).refusals = refusals;
        }
        effects
    }

    /// The thread asks for what is within `left` from now on, or else for what it has. Returns that
    /// reservation; the request of a thread that may have none is taken back.
    fn ask_for_less(
        &mut self,
        context: &mut Context<'_>,
        slot: Slot,
        (target, left): (Reservation, Bandwidth),
    ) -> (Option<Reservation>, Effects) {
        let Some(thread) = context.tasks.get(slot) else {
            return (None, Effects::default());
        };
        let server = self.servers.get_mut(slot);
        server.ceiling = Some(left);
        let until = context.now + FIRST_RETRY.doubled(server.refusals, LONGEST_RETRY);
        server.refusals += 1;
        context.timers.set(until, TimerEvent::Retry(thread.task.id));
        let ceiling = thread.ceiling(server.ceiling);
        let less = allocation::within(target, ceiling, &self.capacity).or(server.held());
        if less.is_none() {
            server.state.back_off(until, None);
            context.arbiter.withdraw(slot);
            return (None, Effects::default());
        }
        let less = less.filter(|&less| context.arbiter.lower(slot, less));
        (less, Effects::default())
    }
}
