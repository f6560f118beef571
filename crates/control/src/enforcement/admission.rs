//! Refusals for lack of room: other programs hold reservations, or a thread's owner may have no
//! more.

use onbeat_model::{Actuator, Bandwidth, Refusal, Reservation};

use super::{Enforcer, Enforcing, FIRST_RETRY, LONGEST_RETRY, as_counted};
use crate::Why;
use crate::allocation::{self, bandwidth};
use crate::report::decision::What;
use crate::task::Slot;
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
}

impl<A: Actuator> Enforcing<'_, A> {
    /// The kernel has no room for `target`: takes as much as it admits, and from then on shares out
    /// no more than that, until there may be room again.
    pub(super) fn step_down(&mut self, slot: Slot, target: Reservation, why: Why) {
        let held = self.enforcer.held(slot);
        let shortest = self.enforcer.capacity.shortest_runtime;
        for step in STEPS_DOWN {
            let runtime = target.runtime().scale(step).max(shortest);
            let Ok(less) = Reservation::new(runtime, target.deadline(), target.period()) else {
                break;
            };
            if less.bandwidth() <= bandwidth(held) {
                break;
            }
            if self.put_in_force(slot, less).is_ok() {
                self.reserved(slot, less, why);
                break;
            }
        }
        let admission = &mut self.enforcer.admission;
        admission.total = Some(self.enforcer.in_force);
        let pause = FIRST_RETRY.doubled(admission.tries, LONGEST_RETRY);
        admission.tries += 1;
        self.arbiter.look_at_all();
        self.timers
            .set(self.now + pause, TimerEvent::RetryAdmission);
    }

    /// Holds the requests that changed against what their threads' owners may have, before other
    /// requests are compressed for them.
    pub(crate) fn keep_within_quotas(&mut self) {
        for slot in self.arbiter.changed().to_vec() {
            let server = self.enforcer.servers.get(slot);
            let (held, is_first) = (server.held(), server.ceiling.is_none());
            let wanted = self.arbiter.wanted(slot);
            let wanted = wanted.filter(|_| server.fixed.is_none());
            let Some((wanted, task)) = wanted.zip(self.task(slot)) else {
                continue;
            };
            let counted = as_counted(wanted, self.scale, &self.enforcer.capacity);
            let Err(refusal @ Refusal::OverQuota { left, .. }) =
                self.enforcer.actuator.admits(task.id, counted)
            else {
                continue;
            };
            if is_first {
                self.enter(
                    slot,
                    (What::Refused, Why::Refused(refusal)),
                    (held, Some(wanted)),
                );
            }
            self.ask_for_less(slot, (wanted, left));
        }
    }

    /// The thread's owner may have no more than `left` for it: the thread asks for that much, until
    /// it is time to ask for more again. No other thread gets less for it.
    pub(super) fn cap(&mut self, slot: Slot, target: (Reservation, Bandwidth), why: Why) {
        let Some(less) = self.ask_for_less(slot, target) else {
            return;
        };
        let refusals = self.enforcer.servers.get(slot).refusals;
        let raises = less.bandwidth() > bandwidth(self.enforcer.held(slot));
        if raises && self.put_in_force(slot, less).is_ok() {
            self.reserved(slot, less, why);
            // It is refused more than that.
            self.enforcer.servers.get_mut(slot).refusals = refusals;
        }
    }

    /// The thread asks for what is within `left` from now on, or else for what it has. Returns that
    /// reservation; the request of a thread that may have none is taken back.
    fn ask_for_less(
        &mut self,
        slot: Slot,
        (target, left): (Reservation, Bandwidth),
    ) -> Option<Reservation> {
        let thread = self.tasks.get(slot)?;
        let server = self.enforcer.servers.get_mut(slot);
        server.ceiling = Some(left);
        let until = self.now + FIRST_RETRY.doubled(server.refusals, LONGEST_RETRY);
        server.refusals += 1;
        self.timers.set(until, TimerEvent::Retry(thread.task.id));
        let ceiling = thread.ceiling(server.ceiling);
        let less = allocation::within(target, ceiling, &self.enforcer.capacity);
        let Some(less) = less.or(server.held()) else {
            server.state.back_off(until, None);
            self.arbiter.withdraw(slot);
            return None;
        };
        self.arbiter.lower(slot, less).then_some(less)
    }
}
