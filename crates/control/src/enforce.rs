//! From grants to reservations in force: the actuator's answers, and what follows from a refusal.

use onbeat_model::{Actuator, Bandwidth, Instant, Refusal, Reservation, Span, Task};

use crate::controller::{Controller, Due};
use crate::roster::Slot;
use crate::task::state::Enforcement;
use crate::{Entry, What, Why};

pub(crate) const FIRST_RETRY: Span = Span::from_secs(1);
const LONGEST_RETRY: Span = Span::from_secs(30);

/// `first`, doubled `times` times, within reason.
pub(crate) fn backed_off(first: Span, times: u32) -> Span {
    (first * (1 << times.min(16))).min(LONGEST_RETRY)
}

impl<A: Actuator> Controller<A> {
    pub(crate) fn enforce(
        &mut self,
        slot: Slot,
        target: Option<Reservation>,
        why: Why,
        now: Instant,
    ) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        if thread.held() == target || !thread.enforcement.is_open() {
            return;
        }
        let Some(target) = target else {
            self.release(slot, why, now);
            return;
        };
        let task = thread.task.id;
        match self.put_in_force(slot, task, target) {
            Ok(()) => self.reserved(slot, target, why, now),
            Err(refusal) => {
                self.refused(slot, target, why, refusal, now);
                self.protection_replaced(slot, now);
            }
        }
    }

    pub(crate) fn reserved(&mut self, slot: Slot, target: Reservation, why: Why, now: Instant) {
        let Some(thread) = self.thread(slot) else {
            return;
        };
        let (task, old) = (thread.task, thread.held());
        thread.refusals = 0;
        thread.figures.changes += 1;
        let what = if old.is_some() {
            What::Changed
        } else {
            What::Reserved
        };
        self.enforced(slot, now, |state| state.reserve(target));
        self.protection_replaced(slot, now);
        self.enter(task, what, why, (old, Some(target)), now);
    }

    fn refused(
        &mut self,
        slot: Slot,
        target: Reservation,
        why: Why,
        refusal: Refusal,
        now: Instant,
    ) {
        let Some(thread) = self.thread(slot) else {
            return;
        };
        let (task, held) = (thread.task, thread.held());
        match refusal {
            Refusal::Settling { until } => {
                thread.enforcement.back_off(until, Some(why));
                self.timers.set(until, Due::Retry(task.id));
            }
            Refusal::NoRoom { .. } => {
                if self.squeeze.tries == 0 {
                    let change = (held, Some(target));
                    self.enter(task, What::Refused, Why::Refused(refusal), change, now);
                }
                self.step_down(slot, target, why, now);
            }
            Refusal::OverQuota { left, .. } => {
                let first = thread.ceiling.is_none();
                if first {
                    let change = (held, Some(target));
                    self.enter(task, What::Refused, Why::Refused(refusal), change, now);
                }
                self.cap(slot, target, left, why, now);
            }
            Refusal::TakenOver { .. } => self.yield_to_other(slot, Some(refusal), now),
            Refusal::Gone => self.let_go(slot, now),
            _ => {
                let first = thread.refusals == 0;
                let pause = backed_off(FIRST_RETRY, thread.refusals);
                thread.refusals += 1;
                thread.enforcement.back_off(now + pause, None);
                if held.is_none() {
                    self.drop_claim(slot);
                }
                self.timers.set(now + pause, Due::Retry(task.id));
                if first {
                    let change = (held, Some(target));
                    self.enter(task, What::Refused, Why::Refused(refusal), change, now);
                }
            }
        }
    }

    /// The time to ask again has come.
    pub(crate) fn retry(&mut self, slot: Slot, now: Instant) {
        let Some(thread) = self.thread(slot) else {
            return;
        };
        if thread.ceiling.take().is_some() && thread.enforcement.is_open() {
            self.consider(slot, None);
            return;
        }
        let Some(why) = thread.enforcement.retry(now) else {
            return;
        };
        if thread.place.is_some() {
            self.ask(slot, why.unwrap_or(Why::RoomAgain));
        } else if thread.held().is_some() {
            self.release(slot, why.unwrap_or(Why::RhythmLost), now);
        } else {
            self.consider(slot, why);
        }
    }

    /// Takes the thread's wish back, and its reservation.
    pub(crate) fn withdraw(&mut self, slot: Slot, why: Why, now: Instant) {
        let fixed = self
            .thread(slot)
            .is_some_and(|thread| thread.fixed.is_some());
        if fixed && why != Why::Finished {
            return;
        }
        self.drop_claim(slot);
        if self
            .thread(slot)
            .is_some_and(|thread| thread.held().is_some())
        {
            self.release(slot, why, now);
        }
    }

    /// The thread is gone. That it ended, the sensor will tell in its turn.
    pub(crate) fn let_go(&mut self, slot: Slot, now: Instant) {
        self.drop_claim(slot);
        self.enforced(slot, now, Enforcement::gone);
        self.dismiss(slot, now);
    }

    /// Somebody else changed the thread, and wins.
    pub(crate) fn yield_to_other(&mut self, slot: Slot, refusal: Option<Refusal>, now: Instant) {
        self.drop_claim(slot);
        let Some(thread) = self.thread(slot) else {
            return;
        };
        let (task, old) = (thread.task, thread.held());
        self.enforced(slot, now, Enforcement::yield_to_other);
        let refusal = refusal.unwrap_or(Refusal::TakenOver {
            now: "noticed by itself".to_owned(),
        });
        self.enter(
            task,
            What::TakenOver,
            Why::Refused(refusal),
            (old, None),
            now,
        );
    }

    /// What is in force for the thread changes at `now`: keeps account of it.
    pub(crate) fn enforced(
        &mut self,
        slot: Slot,
        now: Instant,
        change: impl FnOnce(&mut Enforcement),
    ) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let before = thread.held();
        change(&mut thread.enforcement);
        let held = thread.held();
        self.in_force = self.in_force - bandwidth(before) + bandwidth(held);
        thread.figures.holds(held.map(|held| held.bandwidth()), now);
    }

    pub(crate) fn enter(
        &mut self,
        task: Task,
        what: What,
        why: Why,
        (old, new): (Option<Reservation>, Option<Reservation>),
        at: Instant,
    ) {
        let slot = self.roster.find(task.id);
        if let Some(thread) = slot.and_then(|slot| self.thread(slot)) {
            thread.last_entry = Some((what, why.clone()));
        }
        self.journal.push(Entry {
            at,
            task,
            what,
            why,
            old,
            new,
        });
    }
}

pub(crate) fn bandwidth(reservation: Option<Reservation>) -> Bandwidth {
    reservation.map_or(Bandwidth::ZERO, |r| r.bandwidth())
}
