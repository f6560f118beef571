//! Boosts for ordinary tasks without a reservation: a nice value and a slice, or `SCHED_RR`.
//!
//! A task is boosted if it has the default scheduling, or differs from it only by a nice value
//! below zero. Any other nice value, slice or policy is left alone, also if it is set while the
//! task is boosted. A nice value of 0 or below that is set meanwhile does not end the boost: the
//! boost is put back, and the task gets its value at the end, if it has the right to it. Chromium
//! sets 0 or -8 in each thread that it starts, with or without the right. The children of a boosted
//! task start with the default.
//!
//! A shorter slice makes a task wait for less and run for less at a time, at the same share (EEVDF,
//! Linux 6.12). Older kernels ignore it.
//!
//! A boost with a priority is a real-time one, because the kernel moves a waiting real-time
//! task to a CPU where an ordinary one runs, and leaves ordinary tasks with the least nice value to
//! wait for each other. Where the kernel refuses it, and for a process that has bounded by
//! RLIMIT_RTTIME how long its real-time threads may compute, the boost is a nice value: over that
//! limit the kernel ends the process. PipeWire's clients set it to 0.2 s. It counts from when it is
//! set, and each request looks at it: the loop's come every 50 ms. A kernel with groups for
//! real-time tasks (CONFIG_RT_GROUP_SCHED) refuses to move one of these into another control group.
//! Container runtimes and the like move a process when it begins, so there the boost of one that
//! begins is a nice value, too.
//!
//! A process that may give its threads a real-time priority itself, by RLIMIT_RTPRIO, is refused
//! that where a thread's children are to begin anew. A thread that takes one does so when it
//! begins, so in its first two seconds its boost is a slice alone, the shortest there is, and its
//! children have it, too, until they are boosted themselves.

use std::collections::HashMap;
use std::fs;
use std::sync::LazyLock;

use onbeat_kernel::clock;
use onbeat_model::{Boost, Refusal, TaskId};

use crate::attributes::{self, Attributes, Fair, Policy, RealTime, kept_nice, taken_over};
use crate::limits::may_schedule;
use crate::restore::{StateFile, StateRecord};
use crate::task;

pub(crate) const DEFAULT: Attributes = Attributes::ordinary(0, false);

const fn is_first(attributes: &Attributes) -> bool {
    matches!(attributes.policy, Policy::RoundRobin(_))
}

/// What a process that may take a priority itself is given. The kernel's shortest is 1 ns shorter,
/// so this one tells that it comes from here.
const SHORTEST_SLICE_NS: u64 = 100_001;

/// In clock ticks of 10 ms: enough for a thread that begins among eight hogs on one CPU, where it
/// has a turn each 24 ms.
const TAKES_PRIORITY: u64 = 200;

/// What it has after the watcher has ended that boost for a moment.
pub(crate) const LOWERED: Attributes = Attributes {
    reset_on_fork: true,
    ..DEFAULT
};

#[derive(Debug, Default)]
pub(crate) struct Boosts(HashMap<TaskId, BoostState>);

#[derive(Clone, Copy, Debug)]
enum BoostState {
    Boosted(Boosted),
    TakenOver,
}

#[derive(Clone, Copy, Debug)]
struct Boosted {
    before: Attributes,
    set: Attributes,
    leader: Option<TaskId>,
    stays_ordinary: bool,
    /// See [`attributes::has_priorities`]. Not bound by it with more rights, which it may drop.
    has_priorities: bool,
}

impl Boosts {
    pub(crate) fn set(
        &mut self,
        state_file: &mut StateFile,
        task: TaskId,
        boost: Option<Boost>,
    ) -> Result<(), Refusal> {
        let Some(boost) = boost else {
            return self.give_back(state_file, task);
        };
        let now = self.look(state_file, task)?;
        let (before, refused_before, has_priorities) = match self.0.get(&task) {
            Some(BoostState::TakenOver) => return Err(taken_over(now)),
            Some(BoostState::Boosted(held)) => {
                (held.before, held.stays_ordinary, held.has_priorities)
            }
            None => {
                let before = urgent_or_default(now).ok_or_else(|| Refusal::NotOrdinary {
                    now: now.to_string(),
                })?;
                (before, false, attributes::has_priorities(task.tid))
            }
        };
        let may_take_priority =
            has_priorities && is_younger(task, TAKES_PRIORITY) && !may_schedule(task.tid);
        let goes_first = boost.priority > 0
            && !refused_before
            && !may_take_priority
            && !limits_real_time(task.tid)
            && (is_first(&now) || !may_be_moved(task));
        let mut wanted = if goes_first {
            first(boost.priority)
        } else if may_take_priority {
            short(before)
        } else {
            boosted(boost, before)
        };
        if now == wanted && self.0.contains_key(&task) {
            return Ok(());
        }
        let leader = task::leader(task);
        state_file.announce(task, leader, before, wanted)?;
        // The task may have changed while the file was written.
        if self.look(state_file, task)? != now {
            let _ = state_file.write(StateRecord::Refused { task });
            return Err(taken_over(now));
        }
        // A real-time priority hides the nice value, which is to be the task's own then.
        let is_set = if goes_first && now != before && !is_first(&now) {
            before.set(task.tid).and_then(|()| wanted.set(task.tid))
        } else {
            wanted.set(task.tid)
        };
        let stays_ordinary = goes_first && is_set.is_err();
        let is_set = if stays_ordinary {
            wanted = boosted(boost, before);
            state_file.announce(task, leader, before, wanted)?;
            wanted.set(task.tid)
        } else {
            is_set
        };
        if let Err(error) = is_set {
            let _ = state_file.write(StateRecord::Refused { task });
            return Err(task::refused(task.tid, &error));
        }
        let held = Boosted {
            before,
            set: wanted,
            leader,
            stays_ordinary: stays_ordinary || refused_before,
            has_priorities,
        };
        self.0.insert(task, BoostState::Boosted(held));
        attributes::reached(task, &wanted).inspect_err(|_| self.ended(state_file, task))
    }

    /// The task is gone. A thread that executes another program takes over the number of its
    /// process's leader and keeps its boost, which is given back there.
    pub(crate) fn ended(&mut self, state_file: &mut StateFile, task: TaskId) {
        if let Some(BoostState::Boosted(held)) = self.0.get(&task)
            && let Some(leader) = held.leader.filter(|leader| !self.0.contains_key(leader))
            && Attributes::get(leader.tid).is_ok_and(|now| now == held.set)
            && task::is_alive(leader)
        {
            let _ = held.before.set(leader.tid);
        }
        self.forget(state_file, task);
    }

    fn forget(&mut self, state_file: &mut StateFile, task: TaskId) {
        if let Some(BoostState::Boosted(_)) = self.0.remove(&task) {
            // A restore finds out by itself that nothing is left to do.
            let _ = state_file.write(StateRecord::Done { task });
        }
    }

    /// Ends all boosts. A task for which that fails stays in the state file.
    pub(crate) fn give_all_back(&mut self, state_file: &mut StateFile) {
        let tasks: Vec<TaskId> = self.0.keys().copied().collect();
        for task in tasks {
            let _ = self.give_back(state_file, task);
        }
    }

    fn give_back(&mut self, state_file: &mut StateFile, task: TaskId) -> Result<(), Refusal> {
        if !matches!(self.0.get(&task), Some(BoostState::Boosted(_))) {
            return Ok(());
        }
        match self.look(state_file, task) {
            Ok(_) => {}
            Err(Refusal::Gone) => return Ok(()),
            Err(refusal) => return Err(refusal),
        }
        if let Some(BoostState::Boosted(held)) = self.0.get(&task) {
            let given_back = held.before.set(task.tid);
            given_back.map_err(|error| task::refused(task.tid, &error))?;
        }
        self.forget(state_file, task);
        Ok(())
    }

    /// The task's present scheduling; an error if another program has changed it to anything but a
    /// nice value of 0 or below.
    fn look(&mut self, state_file: &mut StateFile, task: TaskId) -> Result<Attributes, Refusal> {
        let now = attributes::of(task).inspect_err(|refusal| {
            if *refusal == Refusal::Gone {
                self.ended(state_file, task);
            }
        })?;
        match self.0.get_mut(&task) {
            Some(BoostState::Boosted(held)) if held.set != now || held.is_reniced(task.tid) => {
                let reniced = held.reniced(task.tid, now);
                match reniced {
                    Some(nice) if nice <= 0 => {
                        // Without the right to it, the task's own call would have failed.
                        let was_checked = is_first(&held.set);
                        if was_checked || nice == 0 || attributes::may_set_nice(task.tid, nice) {
                            held.before = Attributes::ordinary(nice, false);
                        }
                        held.set = now;
                        return Ok(now);
                    }
                    // The slice and the flag are this boost's, and go with it.
                    Some(nice) => drop(Attributes::ordinary(nice, false).set(task.tid)),
                    None => attributes::put_nice_back(task.tid, &held.set, &held.before),
                }
                self.forget(state_file, task);
                self.0.insert(task, BoostState::TakenOver);
                Err(taken_over(now))
            }
            _ => Ok(now),
        }
    }
}

impl Boosted {
    /// The nice value that the task was given meanwhile, if nothing else has changed.
    fn reniced(&self, tid: u32, now: Attributes) -> Option<i32> {
        if is_first(&self.set) && now == self.set {
            return kept_nice(tid).ok();
        }
        if is_first(&self.set) && now == LOWERED {
            return self.before.nice();
        }
        now.nice().filter(|&nice| self.set.with_nice(nice) == now)
    }

    /// It was, under a real-time priority, which hides that.
    fn is_reniced(&self, tid: u32) -> bool {
        is_first(&self.set)
            && kept_nice(tid).is_ok_and(|nice| self.before.nice().is_some_and(|own| own != nice))
    }
}

/// Whether the task's process has bounded how long its real-time threads may compute. One that does
/// not tell may have.
fn limits_real_time(tid: u32) -> bool {
    attributes::limit(tid, libc::RLIMIT_RTTIME) != Some(libc::RLIM_INFINITY)
}

fn may_be_moved(task: TaskId) -> bool {
    /// A function that kernels with groups for real-time tasks have, by their type information.
    static REAL_TIME_GROUPS: LazyLock<bool> = LazyLock::new(|| {
        let types = fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
        let mut names = types.split(|byte| *byte == 0);
        names.any(|name| name == b"sched_rt_can_attach")
    });
    /// In clock ticks of 10 ms: what moves a process does so at once, and sound is late meanwhile.
    const NEW: u64 = 30;
    let begins = |it: TaskId| is_younger(it, NEW);
    // A process is as old as its oldest thread, and nothing is read for those that are not new.
    begins(task) && task::leader(task).is_none_or(begins) && *REAL_TIME_GROUPS
}

fn is_younger(task: TaskId, ticks: u64) -> bool {
    clock::ticks_at(clock::now()).saturating_sub(task.started_ticks) < ticks
}

/// What a task that may be boosted has before: what it has now, without a slice of ours that it was
/// born with.
fn urgent_or_default(now: Attributes) -> Option<Attributes> {
    let nice = now.nice().filter(|&nice| nice <= 0)?;
    let before = Attributes::ordinary(nice, false);
    (now == before || now == short(before)).then_some(before)
}

const fn first(priority: u32) -> Attributes {
    Attributes {
        policy: Policy::RoundRobin(RealTime { priority }),
        reset_on_fork: true,
    }
}

fn boosted(boost: Boost, before: Attributes) -> Attributes {
    let nice = -i32::from(boost.levels.min(20));
    let nice = before.nice().map_or(nice, |before| before.min(nice));
    ordinary(nice, boost.slice.as_ns(), true)
}

fn short(before: Attributes) -> Attributes {
    ordinary(before.nice().unwrap_or(0), SHORTEST_SLICE_NS, false)
}

fn ordinary(nice: i32, slice_ns: u64, reset_on_fork: bool) -> Attributes {
    let set = Attributes {
        policy: Policy::Other(Fair { nice, slice_ns }),
        reset_on_fork,
    };
    set.as_reported()
}
