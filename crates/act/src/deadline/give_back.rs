//! Giving tasks back what they had: when, how long a throttled one is waited for, and what the
//! books say afterwards.

use onbeat_model::{Instant, Refusal, Span, TaskId};

use super::leave::{is_throttled, leave};
use super::{DeadlineActuator, Entry, Held, diagnosis};
use crate::clock;

/// What a timer of the kernel may come late by before a task is thought to have settled: two ticks
/// at 250 Hz, and some.
pub(super) const MARGIN: Span = Span::from_ms(10);

/// How long dropping the actuator waits for tasks that are better waited for.
pub(super) const LAST_PATIENCE: Span = Span::from_ms(200);

/// Between two looks at a throttled task.
const LOOK_EVERY: Span = Span::from_ms(2);

/// Periods for which a throttled task is waited for.
const PERIODS_OF_PATIENCE: u64 = 2;

/// What to do about a task that is better waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Answer when to ask again.
    Wait,
    /// Give it back all the same.
    Over,
}

impl DeadlineActuator {
    /// Gives every task back, waiting up to `patience` for those that are better waited for.
    /// Answers which could not be given back, and why; those stay in the state file.
    pub fn release_all(&mut self, patience: Span) -> Vec<(TaskId, Refusal)> {
        let end = clock::now() + patience;
        while clock::now() < end {
            let refused = self.give_all_back(Patience::Wait);
            if !refused.iter().any(|(_, why)| why.retry_at().is_some()) {
                return refused;
            }
            clock::sleep(LOOK_EVERY);
        }
        self.give_all_back(Patience::Over)
    }

    fn give_all_back(&mut self, patience: Patience) -> Vec<(TaskId, Refusal)> {
        let held = |entry: &Entry| matches!(entry, Entry::Held(_));
        let tasks = self.tasks.iter().filter(|(_, entry)| held(entry));
        let mut tasks: Vec<TaskId> = tasks.map(|(&task, _)| task).collect();
        tasks.sort_unstable();
        let refusals = tasks
            .into_iter()
            .filter_map(|task| Some((task, self.give_back(task, patience).err()?)));
        refusals.collect()
    }

    pub(super) fn give_back(&mut self, task: TaskId, patience: Patience) -> Result<(), Refusal> {
        let held = match self.look_at_held(task) {
            Ok((_, Some(held))) => held,
            Ok((_, None)) | Err(Refusal::Gone) => return Ok(()),
            Err(refusal) => return Err(refusal),
        };
        if patience == Patience::Wait && is_throttled(task) {
            if let Some(until) = self.wait_for(task, held, clock::now()) {
                return Err(Refusal::Settling { until });
            }
        }
        match leave(task, &held.set, &held.before) {
            Ok(()) => {
                self.forget(task);
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                self.forget(task);
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(Refusal::NotPermitted {
                advice: format!(
                    "task {task} cannot get {} back: run 'onbeat restore' with CAP_SYS_NICE",
                    held.before
                ),
            }),
            Err(error) => Err(diagnosis::unknown(task.tid, &error)),
        }
    }

    /// When to look at the throttled task again; none if it has been waited for long enough.
    fn wait_for(&mut self, task: TaskId, held: Held, now: Instant) -> Option<Instant> {
        let since = held.waiting_since.unwrap_or(now);
        let waiting = Held {
            waiting_since: Some(since),
            ..held
        };
        self.tasks.insert(task, Entry::Held(waiting));
        let end = since + held.reservation.period() * PERIODS_OF_PATIENCE;
        (now < end).then(|| now + LOOK_EVERY)
    }
}
