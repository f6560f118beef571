//! Probations: threads that starve get a reservation for a while, so that they can show their
//! period.
//!
//! This file decides which threads go on probation, and which others with them. `estimation` says
//! which threads starve, how often those without a clock go on probation, and when one is over.

use onbeat_model::{Actuator, Instant, Span, TaskId};

use crate::Why;
use crate::estimation::clock::is_clocked;
use crate::estimation::probation::ProbationEnd;
use crate::estimation::starvation::{LOOK_RARELY, PROBATION};
use crate::protection::boost::BoostWhy;
use crate::run_loop::Controller;
use crate::task::Thread;
use crate::task::table::Slot;
use crate::timer::TimerEvent;

/// The pause before the next attempt if a probation is put off.
const PUT_OFF: Span = Span::from_ms(500);

impl<A: Actuator> Controller<A> {
    /// Puts the thread on probation, and those that starve beside it; false if it may not be now.
    pub(crate) fn begin_probation(
        &mut self,
        slot: Slot,
        task: TaskId,
        why: Why,
        now: Instant,
    ) -> bool {
        let may = self.tries_together(slot, now)
            || !self.is_tried_by_protection(slot, now) && {
                let payer = self
                    .tasks
                    .get_mut(slot)
                    .map_or(0, |thread| thread.party.payer);
                self.estimating.probations.admits_alone(payer, now)
            };
        let Some(thread) = self.tasks.get_mut(slot) else {
            return false;
        };
        if !may {
            thread.postpone_probation(now + PUT_OFF);
            return false;
        }
        thread.begin_probation(None, now);
        self.put_on_probation(slot, task, why, now);
        for slot in self.tasks.slots() {
            self.try_too(slot, now);
        }
        true
    }

    pub(crate) fn put_on_probation(&mut self, slot: Slot, task: TaskId, why: Why, now: Instant) {
        let until = self.estimating.probations.extend(now + PROBATION);
        self.timers.set(until, TimerEvent::ProbationOver(task));
        self.protect(slot, BoostWhy::OnTrial, now);
        self.consider(slot, Some(why));
    }

    /// A player and its display server must both get to run, or neither shows its rhythm: while one
    /// thread is on probation, others that starve join it, if a clock is heard in their process.
    pub(crate) fn try_too(&mut self, slot: Slot, now: Instant) {
        if now >= self.estimating.probations.until() {
            return;
        }
        let thread = self.tasks.get(slot);
        let starves = thread.and_then(|thread| thread.starves_too(now, &self.settings));
        let Some(why) = starves.filter(|_| self.tries_together(slot, now)) else {
            return;
        };
        if let Some(thread) = self.tasks.get_mut(slot) {
            let task = thread.task.id;
            thread.begin_probation(None, now);
            self.put_on_probation(slot, task, why, now);
        }
    }

    /// True if the threads of its process go on probation together: a clock is heard in it, and its
    /// threads are not protected or protection does not help.
    fn tries_together(&self, slot: Slot, now: Instant) -> bool {
        let thread = self.tasks.get(slot);
        let needs = thread.is_some_and(|t| !self.settings.protects || t.protection.is_in_vain());
        needs && is_clocked(&self.tasks, slot, now)
    }

    /// Puts a new thread on probation if its process is on probation. A program begins one thread
    /// after the other, and each would have to starve first.
    pub(crate) fn join_probation(&mut self, slot: Slot, now: Instant) {
        if now >= self.estimating.probations.until() {
            return;
        }
        let Some(thread) = self.tasks.get(slot) else {
            return;
        };
        let (task, pid) = (thread.task.id, thread.task.pid);
        let beside = |other: &Thread| other.task.pid == pid && other.is_on_probation();
        let may = thread.may_be_tried(&self.settings)
            && self.tasks.iter().any(beside)
            && self.tries_together(slot, now);
        if may && let Some(thread) = self.tasks.get_mut(slot) {
            thread.begin_probation(None, now);
            self.put_on_probation(slot, task, Why::JoinsTrial, now);
        }
    }

    pub(crate) fn starves(
        &mut self,
        task: TaskId,
        now: Instant,
        executed: &mut dyn FnMut(TaskId) -> Option<Span>,
    ) {
        let crowd = self.crowd();
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        if thread.is_locked() {
            self.timers
                .set(now + LOOK_RARELY, TimerEvent::Starves(task));
            return;
        }
        let Some(executed) = executed(task) else {
            return;
        };
        let (next, why) = thread.look(now, executed, &self.settings);
        // A crowd is looked at more rarely, because each look is a system call.
        let next = now + next.since(now) * crowd;
        self.timers.set(next, TimerEvent::Starves(task));
        if let Some(why) = why {
            self.begin_probation(slot, task, why, now);
        }
    }

    pub(crate) fn end_probation(&mut self, task: TaskId, now: Instant) {
        let until = self.estimating.probations.until();
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        match thread.ends_probation(now, until) {
            ProbationEnd::NotYet(end) => self.timers.set(end, TimerEvent::ProbationOver(task)),
            ProbationEnd::InVain => self.withdraw(slot, Why::TrialOver, now),
            ProbationEnd::NotOnProbation => {}
        }
    }
}
