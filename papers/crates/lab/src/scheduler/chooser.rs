//! Puts chosen tasks under SCHED_EXT, where a scheduler that schedules only chosen tasks finds
//! them, and back.
//!
//! The children of a chosen task inherit the policy: such tasks are taken in, too, so that they are
//! put back with the others. Tasks that had the policy before belong to another program, and stay
//! as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use onbeat_act::attributes::{Attributes, Fair, Policy, SCHED_EXT, kept_nice};
use onbeat_act::restore::{StateFile, StateRecord};
use onbeat_act::task::{self, numbers};
use onbeat_act::tasks_of_policy;
use onbeat_model::TaskId;

#[derive(Debug, thiserror::Error)]
pub(super) enum NotChosen {
    /// It is scheduled by another class, which comes before sched_ext.
    #[error("thread {tid} has {now}, and only ordinary threads can be chosen")]
    OtherClass { tid: u32, now: Attributes },
    #[error("thread {tid} cannot be put under SCHED_EXT: {source}")]
    System { tid: u32, source: io::Error },
}

/// The policy that a task was given, and the one before.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    before: Attributes,
    set: Attributes,
}

/// The tasks under SCHED_EXT by our choice. Puts them back when it is dropped.
#[derive(Debug)]
pub(super) struct Chooser {
    state_file: StateFile,
    chosen: BTreeMap<TaskId, Chosen>,
    /// Under SCHED_EXT by another program's choice.
    foreign: BTreeSet<TaskId>,
}

impl Chooser {
    /// Notes its changes in `state_file`.
    pub(super) fn new(state_file: StateFile) -> Self {
        Self {
            state_file,
            chosen: BTreeMap::new(),
            foreign: extensible_tasks().collect(),
        }
    }

    /// Chooses all threads of the process `pid`, and those that they start from now on.
    /// Fails if a thread cannot be chosen, or there is no such process. Those before it stay
    /// chosen.
    pub(super) fn choose(&mut self, pid: u32) -> Result<(), NotChosen> {
        let system = |tid| move |source| NotChosen::System { tid, source };
        task::identify(pid).map_err(system(pid))?;
        if let Some(why) = task::off_limits(pid) {
            return Err(system(pid)(io::Error::other(why)));
        }
        // A thread that starts another between two looks is found by the second.
        loop {
            let mut found = false;
            for tid in numbers(&Path::new("/proc").join(pid.to_string()).join("task")) {
                let Ok(task) = task::identify(tid) else {
                    continue;
                };
                if self.chosen.contains_key(&task) || self.foreign.contains(&task) {
                    continue;
                }
                found = true;
                let before = Attributes::get(tid).map_err(system(tid))?;
                let set = match before.policy {
                    Policy::Other(fair) | Policy::Batch(fair) | Policy::Idle(fair) => {
                        under_extensible(fair, before.reset_on_fork)
                    }
                    Policy::Ext(_) => before,
                    _ => return Err(NotChosen::OtherClass { tid, now: before }),
                };
                let before = match before.policy {
                    Policy::Ext(fair) => Attributes::ordinary(fair.nice, before.reset_on_fork),
                    _ => before,
                };
                self.put_under(task, before, set).map_err(system(tid))?;
            }
            if !found {
                return Ok(());
            }
        }
    }

    /// Takes in what chosen tasks have started since, and forgets those that have ended.
    pub(super) fn follow(&mut self) {
        self.chosen.retain(|&task, _| task::is_alive(task));
        for task in extensible_tasks() {
            if self.chosen.contains_key(&task) || self.foreign.contains(&task) {
                continue;
            }
            if let Ok(now) = Attributes::get(task.tid)
                && let Policy::Ext(fair) = now.policy
            {
                // One that cannot be noted now is met again by the next look.
                let _ = self.put_under(
                    task,
                    Attributes::ordinary(fair.nice, now.reset_on_fork),
                    now,
                );
            }
        }
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.chosen.keys().copied()
    }

    /// Gives every chosen task what it had before; one that another program has changed since stays
    /// as it is. Answers which could not be put back, and why; those stay in the state file.
    pub(super) fn put_back(&mut self) -> Vec<(TaskId, io::Error)> {
        self.follow();
        let mut failed = Vec::new();
        for (task, Chosen { before, set }) in std::mem::take(&mut self.chosen) {
            match leave(task, set, before) {
                Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                    failed.push((task, error));
                    continue;
                }
                _ => {}
            }
            // A record too many is looked at once more by a restore, and found to be done.
            let _ = self.state_file.write(StateRecord::Done { task });
        }
        failed
    }

    fn put_under(&mut self, task: TaskId, before: Attributes, set: Attributes) -> io::Result<()> {
        self.state_file.write(StateRecord::Change {
            task,
            leader: task::leader(task),
            before,
            set,
        })?;
        if let Err(error) = set.set(task.tid) {
            self.state_file.write(StateRecord::Refused { task })?;
            return Err(error);
        }
        self.chosen.insert(task, Chosen { before, set });
        Ok(())
    }
}

/// Gives `task`, which has `set`, what it had `before`. One that has something else by now, but for
/// another nice value, stays as it is.
fn leave(task: TaskId, set: Attributes, before: Attributes) -> io::Result<()> {
    let set = set.with_nice(kept_nice(task.tid)?);
    if Attributes::get(task.tid)? == set && task::is_alive(task) {
        before.set(task.tid)?;
    }
    Ok(())
}

impl Drop for Chooser {
    fn drop(&mut self) {
        for (task, error) in self.put_back() {
            eprintln!(
                "onbeat: {task} was left under SCHED_EXT ({error}): 'onbeat restore' tries again"
            );
        }
    }
}

const fn under_extensible(fair: Fair, reset_on_fork: bool) -> Attributes {
    let policy = Policy::Ext(Fair {
        nice: fair.nice,
        slice_ns: 0,
    });
    Attributes {
        policy,
        reset_on_fork,
    }
}

/// How many tasks are under SCHED_EXT, by any program's choice.
pub(super) fn count() -> usize {
    extensible_tasks().count()
}

fn extensible_tasks() -> impl Iterator<Item = TaskId> {
    tasks_of_policy(SCHED_EXT as u32).filter_map(|tid| task::identify(tid).ok())
}
