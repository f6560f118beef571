//! Static priorities for tasks that asked for one: what RealtimeKit gives. A task has it whenever
//! it has no reservation.
//!
//! It lies below a reservation: what is set here is what the task has before
//! [`DeadlineActuator`](crate::DeadlineActuator) touches it, and what it is given back. So a state
//! file of its own is made after that one's, and is undone after it.
//!
//! A client of RealtimeKit asks once. So a priority may outlive the service that gave it: the next
//! one takes it over from the state file.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use onbeat_model::{Refusal, TaskId};

use crate::attributes::{self, Attributes, Policy, RealTime, taken_over, with_kept_nice};
use crate::cpufreq::domain::Tree;
use crate::limits::may_reserve;
use crate::restore::{self, Files, Given, Left, Priority, RestoreReport, StateFile, StateRecord};
use crate::task;
use onbeat_kernel::clock;

/// After how long to look again whether a reservation is gone: a person waits for it.
const LOOK_AGAIN: onbeat_model::Span = onbeat_model::Span::from_ms(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    InForce,
    /// The kernel gives no real-time priority in the task's control group (CONFIG_RT_GROUP_SCHED).
    /// The task has what it had, and the priority is noted for the next service.
    Withheld,
}

/// The priorities that are in force. Dropping it puts every task back, unless they are
/// [left](Self::leave_in_force).
#[derive(Debug)]
pub struct Priorities {
    state_file: StateFile,
    /// The request for each task, also for those that are to be raised later.
    given: HashMap<TaskId, Given>,
    tasks: HashMap<TaskId, Raised>,
    are_left: bool,
}

#[derive(Clone, Copy, Debug)]
struct Raised {
    before: Attributes,
    set: Attributes,
    leader: Option<TaskId>,
}

impl Priorities {
    #[must_use]
    pub fn new(state_file: StateFile) -> Self {
        Self {
            state_file,
            given: HashMap::new(),
            tasks: HashMap::new(),
            are_left: false,
        }
    }

    /// Takes over what the state files in `directory` say of services that have ended, and puts
    /// back everything else that they say.
    pub fn adopt(&mut self, directory: &Path) -> io::Result<RestoreReport> {
        restore::restore_but(directory, &Tree::default(), Files::OfDead, |left| {
            self.take_over(&left)
        })
    }

    /// Whether the task has the priority that it was given, and keeps it.
    fn take_over(&mut self, left: &Left) -> bool {
        let &Left { task, given, .. } = left;
        let Ok(now) = attributes::of(task) else {
            return false;
        };
        let Some(change) = left.change else {
            // The other priority that it had when it was asked for has been put back before.
            return self.raise(task, given).is_ok();
        };
        if ![change.in_force, change.pending].contains(&Some(now)) {
            return false;
        }
        let before = change.before;
        let leader = task::leader(task);
        let noted = self.note(task, given).is_ok()
            && self.state_file.announce(task, leader, before, now).is_ok();
        if !noted {
            return false;
        }
        let set = now;
        let raised = Raised {
            before,
            set,
            leader,
        };
        self.tasks.insert(task, raised);
        // A later wish, which a reservation had kept from being carried out.
        let _ = self.raise(task, given);
        true
    }

    /// From now on the priorities that are in force when this is dropped stay in force, so that the
    /// next service can take them over.
    pub fn leave_in_force(&mut self) {
        self.are_left = true;
    }

    /// `task` is to be raised later: a next service does it if this one does not.
    pub fn promise(&mut self, task: TaskId, given: Given) {
        // It is a promise for after a crash: nothing fails without it.
        let _ = self.note(task, given);
    }

    fn note(&mut self, task: TaskId, given: Given) -> io::Result<()> {
        if self.given.get(&task) != Some(&given) {
            self.state_file.write(StateRecord::Given { task, given })?;
            self.given.insert(task, given);
        }
        Ok(())
    }

    /// Gives `task` the priority; its children do not inherit it. A task under SCHED_DEADLINE, or
    /// with a real-time priority from another program, is left as it is.
    pub fn raise(&mut self, task: TaskId, given: Given) -> Result<Effect, Refusal> {
        let raised = self.try_to_raise(task, given);
        if raised.is_err() && !self.tasks.contains_key(&task) {
            self.forget(task);
        }
        raised
    }

    fn try_to_raise(&mut self, task: TaskId, given: Given) -> Result<Effect, Refusal> {
        let now = attributes::of(task)?;
        let raised = self.tasks.get(&task).copied();
        let before = match raised {
            Some(raised) if raised.set == now => raised.before,
            _ => match now.policy {
                Policy::Deadline(_) | Policy::Fifo(_) | Policy::RoundRobin(_) => {
                    return Err(taken_over(now));
                }
                _ => now,
            },
        };
        let set = wanted(before, given.priority);
        if set == now {
            return Ok(Effect::InForce);
        }
        let leader = task::leader(task);
        self.note(task, given)
            .map_err(|error| self.state_file.unwritten(task, &error))?;
        self.state_file.announce(task, leader, before, set)?;
        if let Err(error) = set.set(task.tid) {
            // A record that stays says that the task may have one setting more than it can have.
            let _ = self.state_file.write(StateRecord::Refused { task });
            let is_withheld = matches!(given.priority, Priority::RealTime(_))
                && error.raw_os_error() == Some(libc::EPERM)
                && may_reserve();
            return is_withheld
                .then_some(Effect::Withheld)
                .ok_or_else(|| task::refused(task.tid, &error));
        }
        let raised = Raised {
            before,
            set,
            leader,
        };
        self.tasks.insert(task, raised);
        attributes::reached(task, &set).inspect_err(|_| self.forget(task))?;
        Ok(Effect::InForce)
    }

    /// Gives `task` back what it had before. A task that was not raised, or that another program
    /// changed since, is left as it is.
    /// Fails if the kernel refuses; [`Refusal::Settling`] while a reservation lies above it, under
    /// which the priority would come to light again.
    pub fn put_back(&mut self, task: TaskId) -> Result<(), Refusal> {
        let Some(raised) = self.tasks.get(&task).copied() else {
            self.forget(task);
            return Ok(());
        };
        match attributes::of(task) {
            Ok(now) if now == raised.set => {
                let put_back = with_kept_nice(raised.before, &now, task.tid)
                    .and_then(|before| before.set(task.tid));
                put_back.map_err(|error| task::refused(task.tid, &error))?;
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

    /// A thread that executes another program takes the number of its process's leader, and its
    /// priority along: there it is given back.
    pub fn forget(&mut self, task: TaskId) {
        if let Some(raised) = self.tasks.remove(&task)
            && let Some(leader) = raised.leader
            && self
                .tasks
                .get(&leader)
                .is_none_or(|own| own.set != raised.set)
            && attributes::of(leader) == Ok(raised.set)
            && !task::is_alive(task)
        {
            let _ = with_kept_nice(raised.before, &raised.set, leader.tid)
                .and_then(|before| before.set(leader.tid));
        }
        if self.given.remove(&task).is_some() {
            // Restoring finds out by itself.
            let _ = self.state_file.write(StateRecord::Done { task });
        }
    }

    pub fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.tasks.keys().copied()
    }

    pub fn given(&self) -> impl Iterator<Item = (TaskId, Given)> {
        self.given.iter().map(|(task, given)| (*task, *given))
    }

    pub fn put_all_back(&mut self) -> Vec<(TaskId, Refusal)> {
        let mut tasks: Vec<TaskId> = self.given.keys().copied().collect();
        tasks.sort_unstable();
        tasks
            .into_iter()
            .filter_map(|task| Some((task, self.put_back(task).err()?)))
            .collect()
    }
}

impl Drop for Priorities {
    fn drop(&mut self) {
        if !self.are_left {
            self.put_all_back();
        }
    }
}

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
