//! Static priorities for tasks that asked for one: what RealtimeKit gives. A task has it whenever
//! it has no reservation.
//!
//! It lies below a reservation: what is set here is what the task has before
//! [`DeadlineActuator`](crate::DeadlineActuator) touches it, and what it is given back. So a state
//! file of its own is made after that one's, and is undone after it.

use std::collections::HashMap;
use std::io;

use onbeat_model::{Refusal, Span, TaskId};

use crate::attributes::{Attributes, Policy, RealTime, with_kept_nice};
use crate::clock;
use crate::restore::StateFile;
use crate::task;

/// After how long it is worth looking again whether a reservation is gone.
const LOOK_AGAIN: Span = Span::from_ms(100);

/// What a task asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// SCHED_RR of this priority, from 1 to 99.
    RealTime(u32),
    /// SCHED_OTHER of this nice level, from -20 to 19.
    Nice(i32),
}

/// The priorities that are in force. Dropping it puts every task back.
#[derive(Debug)]
pub struct Priorities {
    state_file: StateFile,
    tasks: HashMap<TaskId, Raised>,
}

#[derive(Clone, Copy, Debug)]
struct Raised {
    before: Attributes,
    set: Attributes,
}

impl Priorities {
    /// None yet; writes to `state_file` before it changes anything.
    #[must_use]
    pub fn new(state_file: StateFile) -> Self {
        Self {
            state_file,
            tasks: HashMap::new(),
        }
    }

    /// Gives `task` the `priority`; its children do not inherit it. One that is under
    /// SCHED_DEADLINE, or that somebody else gave a real-time priority, is left as it is.
    ///
    /// # Errors
    /// See [`Refusal`]; the task then has what it had before.
    pub fn raise(&mut self, task: TaskId, priority: Priority) -> Result<(), Refusal> {
        let now = look(task)?;
        let raised = self.tasks.get(&task).copied();
        let before = match raised {
            Some(raised) if raised.set == now => raised.before,
            _ => match now.policy {
                Policy::Deadline(_) | Policy::Fifo(_) | Policy::RoundRobin(_) => {
                    return Err(Refusal::TakenOver {
                        now: now.to_string(),
                    });
                }
                _ => now,
            },
        };
        let set = wanted(before, priority);
        if set == now {
            return Ok(());
        }
        let leader = task::leader(task);
        let written = self.state_file.change(task, leader, before, set);
        written.map_err(|error| {
            Refusal::Other(format!(
                "task {task} is left as it is, because the state file {} could not be written \
                 ({error}): free some space there, or choose another directory",
                self.state_file.path().display()
            ))
        })?;
        if let Err(error) = set.set(task.tid) {
            // A record that stays says that the task may have one setting more than it can have.
            let _ = self.state_file.refused(task);
            return Err(refusal(task, &error));
        }
        if !task::is_alive(task) {
            // The number went to another task in between, which is made ordinary again.
            if Attributes::get(task.tid).is_ok_and(|now| now == set) {
                let _ = wanted(before, Priority::Nice(0)).set(task.tid);
            }
            self.forget(task);
            return Err(Refusal::Gone);
        }
        self.tasks.insert(task, Raised { before, set });
        Ok(())
    }

    /// Gives `task` back what it had before. Of a task that was not raised, or that somebody else
    /// changed since, nothing happens.
    ///
    /// # Errors
    /// If the kernel refuses; [`Refusal::Settling`] while a reservation lies above it, under which
    /// the priority would come to light again.
    pub fn put_back(&mut self, task: TaskId) -> Result<(), Refusal> {
        let Some(raised) = self.tasks.get(&task).copied() else {
            return Ok(());
        };
        match look(task) {
            Ok(now) if now == raised.set => {
                let put_back = with_kept_nice(raised.before, &now, task.tid)
                    .and_then(|before| before.set(task.tid));
                put_back.map_err(|error| refusal(task, &error))?;
            }
            Ok(now) if matches!(now.policy, Policy::Deadline(_)) => {
                return Err(Refusal::Settling {
                    until: clock::now() + LOOK_AGAIN,
                });
            }
            Ok(_) | Err(Refusal::Gone) => {}
            Err(other) => return Err(other),
        }
        self.forget(task);
        Ok(())
    }

    /// The task is gone.
    pub fn forget(&mut self, task: TaskId) {
        if self.tasks.remove(&task).is_some() {
            // Restoring finds out by itself.
            let _ = self.state_file.done(task);
        }
    }

    /// The tasks that have a priority from here.
    pub fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.tasks.keys().copied()
    }

    /// Puts every task back; which could not be, and why.
    pub fn put_all_back(&mut self) -> Vec<(TaskId, Refusal)> {
        let mut tasks: Vec<TaskId> = self.tasks().collect();
        tasks.sort_unstable();
        tasks
            .into_iter()
            .filter_map(|task| Some((task, self.put_back(task).err()?)))
            .collect()
    }
}

impl Drop for Priorities {
    fn drop(&mut self) {
        self.put_all_back();
    }
}

/// What `priority` makes of a task that has `before`.
fn wanted(before: Attributes, priority: Priority) -> Attributes {
    match priority {
        Priority::RealTime(priority) => Attributes {
            policy: Policy::RoundRobin(RealTime { priority }),
            reset_on_fork: true,
        },
        Priority::Nice(nice) => Attributes {
            reset_on_fork: true,
            ..before.with_nice(nice)
        },
    }
}

fn look(task: TaskId) -> Result<Attributes, Refusal> {
    match Attributes::get(task.tid) {
        Ok(now) if task::is_alive(task) => Ok(now),
        Ok(_) => Err(Refusal::Gone),
        Err(error) => Err(refusal(task, &error)),
    }
}

fn refusal(task: TaskId, error: &io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::ESRCH) => Refusal::Gone,
        Some(libc::EPERM) => Refusal::NotPermitted {
            advice: format!(
                "the priority of task {task} cannot be changed: onbeat needs CAP_SYS_NICE, and, where real-time \
                 groups are compiled in, the task's cgroup some cpu.rt_runtime_us"
            ),
        },
        _ => Refusal::Other(format!("task {task}: {error}")),
    }
}
