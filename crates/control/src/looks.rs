//! What is looked at again when its time has come: does a thread rest, and does it still have what it was given?

use onbeat_model::{Actuator, Instant, Span, Standing, TaskId};

use crate::Why;
use crate::controller::{Controller, Due};
use crate::roster::Slot;
use crate::task::state::Enforcement;

/// How often it is looked whether a thread still has what it asked for.
pub(crate) const LOOK_AT_FIXED: Span = Span::from_ms(2000);

/// No thread is asked more often than this whether it still has what it was given, and where there are many, more rarely
/// yet: each question is a system call.
const CHECKED_EVERY: Span = Span::from_ms(1000);

impl<A: Actuator> Controller<A> {
    pub(crate) fn look(
        &mut self,
        due: Due,
        now: Instant,
        executed: &mut dyn FnMut(TaskId) -> Option<Span>,
    ) {
        match due {
            Due::Look(task) => self.look_at(task, now),
            Due::Retry(task) => {
                if let Some(slot) = self.roster.find(task) {
                    self.retry(slot, now);
                }
            }
            Due::GiveBack(task) => {
                if let Some(slot) = self.roster.find(task) {
                    self.give_back_again(slot, now);
                }
            }
            Due::Sample(task) => {
                if let Some(slot) = self.roster.find(task) {
                    self.hear_of(slot, now);
                }
                self.sample(task, now, executed(task));
            }
            Due::Starves(task) => self.starves(task, now, executed),
            Due::TrialOver(task) => self.end_trial(task, now),
            Due::Boost(task) => self.look_at_boost(task, now, executed(task)),
            Due::Protection => self.review_protection(now, executed),
            Due::Widen => {
                self.squeeze.widen();
                self.arbitrate_all = true;
            }
        }
    }

    pub(crate) fn look_at(&mut self, task: TaskId, now: Instant) {
        let Some(slot) = self.roster.find(task) else {
            return;
        };
        if self.backlog.look_later(slot) {
            return;
        }
        let checked_every = CHECKED_EVERY * self.crowd();
        let Some(thread) = self.thread(slot) else {
            return;
        };
        thread.looked_after = false;
        if matches!(thread.enforcement, Enforcement::Gone) {
            self.end(slot, now);
            return;
        }
        if let Some(why) = thread.rest(now) {
            let computes = matches!(why, Why::NoLongerBlocks { .. });
            self.withdraw(slot, why, now);
            if computes {
                self.no_stage_for_now(slot, now);
            }
            return;
        }
        let fixed = thread.fixed.map(|_| now + LOOK_AT_FIXED);
        let Some(at) = fixed.or_else(|| thread.rests_at(now)) else {
            return;
        };
        thread.looked_after = true;
        let due = thread.held().is_some() && now.since(thread.checked) >= checked_every;
        if due {
            thread.checked = now;
        }
        let runs = thread.ran_lately(now);
        self.timers.set(at, Due::Look(task));
        if due {
            self.check(slot, (task, runs), now);
        }
    }

    /// Whether the thread, of which is known whether it `runs`, still has what it was given.
    fn check(&mut self, slot: Slot, (task, runs): (TaskId, bool), now: Instant) {
        let standing = if runs {
            self.actuator.standing_of_running(task)
        } else {
            self.actuator.standing(task)
        };
        match standing {
            Standing::Held(_) => {}
            Standing::TakenOver => self.yield_to_other(slot, None, now),
            Standing::Gone => self.let_go(slot, now),
            Standing::Own => {
                self.enforced(slot, now, Enforcement::released);
                self.ask(slot, Why::GivenBackByKernel);
            }
        }
    }

    fn sample(&mut self, task: TaskId, now: Instant, executed: Option<Span>) {
        let every = self.settings.parameters.sampling;
        let slot = self.roster.find(task);
        let Some(thread) = slot.and_then(|slot| self.thread(slot)) else {
            return;
        };
        thread.is_sampled = thread.sample(now, executed);
        if thread.is_sampled {
            self.timers.set(now + every, Due::Sample(task));
        }
        if let Some(slot) = slot {
            self.consider(slot, None);
        }
    }
}
