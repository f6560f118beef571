//! Acts on the outcome of an analysis, or of a mark.

use onbeat_decide::predictor::Kind;
use onbeat_model::{Actuator, Instant, Mark, Said, TaskId};

use crate::Why;
use crate::estimation::declared::Marked;
use crate::run_loop::Controller;
use crate::task::Outcome;
use crate::task::table::Slot;
use crate::timer::TimerEvent;

impl<A: Actuator> Controller<A> {
    /// Takes in a thread's mark.
    pub(crate) fn marked(&mut self, mark: &Mark) {
        let slot = self.slot_of(mark.task, mark.woke);
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        match thread.marked(mark, &self.settings) {
            Marked::Nothing => {}
            Marked::Consider(why) => self.consider(slot, why),
            Marked::Led(outcome) => self.follow(slot, mark.task, outcome, mark.at),
        }
        if mark.said == Said::MissedDeadline {
            self.plead(slot, mark);
        }
    }

    /// Counts marks that the tracer left out.
    pub(crate) fn suppressed(&mut self, task: TaskId, count: u32) {
        if let Some(thread) = self
            .tasks
            .find(task)
            .and_then(|slot| self.tasks.get_mut(slot))
        {
            thread.figures.marks_suppressed += u64::from(count);
        }
    }

    /// Requests a reservation for the thread, puts it on probation, or releases it.
    pub(crate) fn follow(&mut self, slot: Slot, task: TaskId, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Same => {}
            Outcome::Plan(why) => {
                let Some(thread) = self.tasks.get_mut(slot) else {
                    return;
                };
                if let Some(at) = thread.look_due(now) {
                    self.timers.set(at, TimerEvent::Look(task));
                }
                self.estimating.probations.proved(thread.party.payer);
                let samples = thread.predictor(&self.settings) == Kind::Rate;
                if samples && !std::mem::replace(&mut thread.is_sampled, true) {
                    thread.sampled = None;
                    self.timers.set(now, TimerEvent::Sample(task));
                }
                self.consider(slot, Some(why));
            }
            Outcome::TryAgain(why) => {
                if !self.begin_probation(slot, task, why, now) {
                    self.withdraw(slot, Why::RhythmLost, now);
                }
            }
            Outcome::Released(why) => self.withdraw(slot, why, now),
        }
    }
}
