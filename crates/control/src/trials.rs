//! Trials of threads that starve: which one is put on trial, with which others, and for how long.
//!
//! A trial costs other programs CPU time, and a batch program starves, too. So the threads of a process
//! are tried together only if a clock is heard in it; of all others one at a time, and ever more rarely.

use std::collections::HashMap;

use onbeat_model::{Actuator, Instant, Span, TaskId};

use crate::Why;
use crate::boosts::BoostWhy;
use crate::controller::{Controller, Due};
use crate::roster::Slot;
use crate::starving::{LOOK_RARELY, TRIAL, pause_after};
use crate::task::{Thread, TrialEnd};

/// The longest pause between two trials of threads without a clock: they then take a twentieth of the
/// time, of one CPU.
const LONGEST_PAUSE_ALONE: Span = Span::from_secs(60);
/// When to ask again for a thread whose trial was put off.
const PUT_OFF: Span = Span::from_ms(500);

/// The trials under way, and those that were alone.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    until: Instant,
    /// By payer.
    alone: HashMap<u32, Alone>,
}

/// The trials of a payer's threads without a clock.
#[derive(Clone, Copy, Debug, Default)]
struct Alone {
    times: u32,
    not_before: Instant,
}

impl Trials {
    /// Whether a thread of the payer's that has no clock may be tried now; counts it if so.
    fn admits_alone(&mut self, payer: u32, now: Instant) -> bool {
        let alone = self.alone.entry(payer).or_default();
        if now < alone.not_before {
            return false;
        }
        let pause = pause_after(alone.times).min(LONGEST_PAUSE_ALONE);
        alone.times = alone.times.saturating_add(1);
        alone.not_before = now + TRIAL + pause;
        true
    }

    /// A thread of the payer's has shown a rhythm: the next trial need not wait as if it had not.
    pub(crate) fn proved(&mut self, payer: u32) {
        self.alone.remove(&payer);
    }
}

impl<A: Actuator> Controller<A> {
    /// The thread is on trial from now on, and those that starve beside it; false if it may not be now.
    pub(crate) fn begin_trial(&mut self, slot: Slot, task: TaskId, why: Why, now: Instant) -> bool {
        let may = self.tries_together(slot, now)
            || !self.is_tried_by_protection(slot, now) && {
                let payer = self.thread(slot).map_or(0, |thread| thread.party.payer);
                self.trials.admits_alone(payer, now)
            };
        let Some(thread) = self.thread(slot) else {
            return false;
        };
        if !may {
            thread.postpone_trial(now + PUT_OFF);
            return false;
        }
        thread.begin_trial(None, now);
        self.put_on_trial(slot, task, why, now);
        for slot in 0..self.threads.len() {
            self.try_too(slot, now);
        }
        true
    }

    pub(crate) fn put_on_trial(&mut self, slot: Slot, task: TaskId, why: Why, now: Instant) {
        self.trials.until = self.trials.until.max(now + TRIAL);
        self.timers.set(self.trials.until, Due::TrialOver(task));
        self.protect(slot, BoostWhy::OnTrial, now);
        self.consider(slot, Some(why));
    }

    /// A player and its display server must both get to run, or neither shows its rhythm: while one
    /// thread is on trial, others that starve join it, if a clock is heard in their process.
    pub(crate) fn try_too(&mut self, slot: Slot, now: Instant) {
        if now >= self.trials.until {
            return;
        }
        let thread = self.threads.get(slot).and_then(Option::as_deref);
        let starves = thread.and_then(|thread| thread.starves_too(now, &self.settings));
        let Some(why) = starves.filter(|_| self.tries_together(slot, now)) else {
            return;
        };
        if let Some(thread) = self.thread(slot) {
            let task = thread.task.id;
            thread.begin_trial(None, now);
            self.put_on_trial(slot, task, why, now);
        }
    }

    /// Whether the threads of its process are tried together. Where they are protected, and that helps, they
    /// need no trial.
    fn tries_together(&self, slot: Slot, now: Instant) -> bool {
        let thread = self.threads.get(slot).and_then(Option::as_ref);
        let needs = thread.is_some_and(|t| !self.settings.protects || t.protection.is_in_vain());
        needs && self.is_clocked(slot, now)
    }

    /// The thread was begun at `now`: where its process is on trial, it is from its first instruction on. A
    /// program that starts begins one thread after the other, and each would have to starve first.
    pub(crate) fn join_trial(&mut self, slot: Slot, now: Instant) {
        if now >= self.trials.until {
            return;
        }
        let Some(thread) = self.threads.get(slot).and_then(Option::as_deref) else {
            return;
        };
        let (task, pid) = (thread.task.id, thread.task.pid);
        let beside = |other: &Thread| other.task.pid == pid && other.is_on_trial();
        let may = thread.may_be_tried(&self.settings)
            && self.threads.iter().flatten().any(|other| beside(other))
            && self.tries_together(slot, now);
        if may && let Some(thread) = self.thread(slot) {
            thread.begin_trial(None, now);
            self.put_on_trial(slot, task, Why::JoinsTrial, now);
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
        let until = self.trials.until;
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
