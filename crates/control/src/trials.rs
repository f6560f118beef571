//! Trials of threads that starve: who is put on trial, with whom, and for how long.

use onbeat_model::{Actuator, Instant, Span, TaskId};

use crate::Why;
use crate::controller::{Controller, Due};
use crate::roster::Slot;
use crate::starving::{LOOK_RARELY, TRIAL};
use crate::thread::TrialEnd;

impl<A: Actuator> Controller<A> {
    pub(crate) fn begin_trial(&mut self, slot: Slot, task: TaskId, why: Why, now: Instant) {
        self.put_on_trial(slot, task, why, now);
        for slot in 0..self.threads.len() {
            self.try_too(slot, now);
        }
    }

    pub(crate) fn put_on_trial(&mut self, slot: Slot, task: TaskId, why: Why, now: Instant) {
        self.trials_until = self.trials_until.max(now + TRIAL);
        self.timers.set(self.trials_until, Due::TrialOver(task));
        self.consider(slot, Some(why));
    }

    /// A player and its display server must both get to run, or neither shows its rhythm: while one
    /// thread is on trial, others that starve join it.
    pub(crate) fn try_too(&mut self, slot: Slot, now: Instant) {
        if now >= self.trials_until {
            return;
        }
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let task = thread.task.id;
        if let Some(why) = thread.starves_too(now, &self.settings) {
            self.put_on_trial(slot, task, why, now);
        }
    }

    pub(crate) fn starves(
        &mut self,
        task: TaskId,
        now: Instant,
        executed: &mut dyn FnMut(TaskId) -> Option<Span>,
    ) {
        let crowd = self.crowd();
        let Some(slot) = self.roster.find(task) else {
            return;
        };
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        if thread.is_kept() {
            self.timers.set(now + LOOK_RARELY, Due::Starves(task));
            return;
        }
        let Some(executed) = executed(task) else {
            return;
        };
        let (next, why) = thread.look(now, executed, &self.settings);
        // Of a crowd more rarely: each look is a system call.
        let next = now + next.since(now) * crowd;
        self.timers.set(next, Due::Starves(task));
        if let Some(why) = why {
            self.begin_trial(slot, task, why, now);
        }
    }

    pub(crate) fn end_trial(&mut self, task: TaskId, now: Instant) {
        let until = self.trials_until;
        let Some(slot) = self.roster.find(task) else {
            return;
        };
        let Some(thread) = self.thread(slot) else {
            return;
        };
        match thread.ends_trial(now, until) {
            TrialEnd::NotYet(end) => self.timers.set(end, Due::TrialOver(task)),
            TrialEnd::InVain => self.withdraw(slot, Why::TrialOver, now),
            TrialEnd::NotOnTrial => {}
        }
    }
}
