//! Giving a task back what it had, at a moment when the kernel's account stays right.
//!
//! What a task is doing when it leaves SCHED_DEADLINE matters:
//!
//! * runnable and within its runtime: the kernel uncounts it at its 0-lag time;
//! * throttled: the same, but the throttling stays until then. It is waited for, two periods at
//!   most;
//! * asleep: past its 0-lag time it would stay counted for good. So its reservation is shrunk to
//!   the least there is just before it leaves, and what leaks is some millionths of a CPU.

use std::fs;

use onbeat_model::{Refusal, Reservation, Span, TaskId};

use super::{DeadlineActuator, Entry, Held, diagnosis};
use crate::attributes::{Attributes, kept_nice};
use crate::clock;
use crate::task::{self, Stat};

/// What a timer of the kernel may come late by before a task is thought to have settled: two ticks
/// at 250 Hz, and some.
pub(super) const MARGIN: Span = Span::from_ms(10);

/// How long dropping the actuator waits for tasks that are better waited for.
pub(super) const LAST_PATIENCE: Span = Span::from_ms(200);

/// Between two looks at a throttled task.
const LOOK_EVERY: Span = Span::from_ms(2);

/// Periods for which a throttled task is waited for.
const PERIODS_OF_PATIENCE: u64 = 2;

/// What to do about a task that had better be waited for.
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
            std::thread::sleep(std::time::Duration::from_nanos(LOOK_EVERY.as_ns()));
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
        let now = clock::now();
        let throttled = is_throttled(task);
        if throttled && patience == Patience::Wait {
            let waiting_since = held.waiting_since.unwrap_or(now);
            if now < waiting_since + held.reservation.period() * PERIODS_OF_PATIENCE {
                let waiting_since = Some(waiting_since);
                let waiting = Held {
                    waiting_since,
                    ..held
                };
                self.tasks.insert(task, Entry::Held(waiting));
                return Err(Refusal::Settling {
                    until: now + LOOK_EVERY,
                });
            }
        }
        let asleep = Stat::read(task.tid).is_some_and(|stat| stat.state != 'R');
        let shrunk = asleep && !throttled && self.shrink(task, &held);
        if let Err(refusal) = self.put_back(task, &held) {
            if shrunk {
                // It had room for this a moment ago; if not now, the state file tells.
                let _ = held.set.set(task.tid);
            }
            if refusal == Refusal::Gone {
                self.forget(task);
                return Ok(());
            }
            return Err(refusal);
        }
        self.tasks.remove(&task);
        let counted = held.reservation.bandwidth();
        self.account
            .give_back(task, counted, held.settled_by(clock::now()));
        self.note_done(task);
        Ok(())
    }

    /// Leaves the task the least the kernel takes. Not worth failing for.
    fn shrink(&mut self, task: TaskId, held: &Held) -> bool {
        let runtime = self.limits.capacity().shortest_runtime;
        let period = held.reservation.period();
        let Ok(least) = Reservation::new(runtime, held.reservation.deadline(), period) else {
            return false;
        };
        let least = Attributes::reserved(least, self.options.reclaim);
        self.announce(task, held.before, least).is_ok() && least.set(task.tid).is_ok()
    }

    /// The nice value may have been changed by hand meanwhile; that one stays.
    fn put_back(&mut self, task: TaskId, held: &Held) -> Result<(), Refusal> {
        let attempt = || {
            let nice = kept_nice(task.tid)?;
            if !task::is_alive(task) {
                return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
            }
            held.before.with_nice(nice).set(task.tid)
        };
        attempt().map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) => Refusal::NotPermitted {
                advice: format!(
                    "task {task} cannot get {} back: run 'onbeat restore' with CAP_SYS_NICE",
                    held.before
                ),
            },
            _ => diagnosis::unknown(task.tid, &error),
        })
    }
}

/// Whether the task has used up its runtime and waits for the next. Where the kernel does not tell,
/// no.
fn is_throttled(task: TaskId) -> bool {
    let text = fs::read_to_string(format!("/proc/{}/sched", task.tid)).unwrap_or_default();
    // A server that was never yet used has neither runtime nor deadline.
    server(&text, "dl.runtime").is_some_and(|left_ns| left_ns <= 0)
        && server(&text, "dl.deadline").is_some_and(|deadline_ns| deadline_ns > 0)
}

/// One of the lines of `/proc/TID/sched` that tell how a task's server stands.
fn server(text: &str, name: &str) -> Option<i64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.rsplit_once(':')?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_the_runtime_is_read_from_the_kernels_words() {
        let text = "policy          :    6\n\
                    dl.runtime      :   -1270\n\
                    dl.deadline     :   1075232798051\n";
        assert_eq!(server(text, "dl.runtime"), Some(-1270));
        assert_eq!(server(text, "dl.deadline"), Some(1_075_232_798_051));
        assert_eq!(server("policy : 0\n", "dl.runtime"), None);
        assert_eq!(server("dl.runtime : many\n", "dl.runtime"), None);
    }
}
