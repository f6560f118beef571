//! A task's complete scheduling as the kernel keeps it, read and set by raw system calls, because
//! no C library wraps `sched_setattr` with everything it can say today.
//!
//! `struct sched_attr` grows by versions; its first field says how much of it the caller knows.
//! Version 1 (56 bytes, with the utilisation clamps) is used: the clamps are never set, so a task
//! keeps its own.

use std::fmt;
use std::fs;
use std::io;
use std::sync::OnceLock;

use onbeat_model::{Refusal, Reservation, Span, TaskId};
use serde::{Deserialize, Serialize};

use crate::limits::may_schedule;
use crate::task;

/// Not in every C library's headers yet; `include/uapi/linux/sched.h`.
pub const SCHED_EXT: i32 = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    #[serde(flatten)]
    pub policy: Policy,
    pub reset_on_fork: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "lowercase")]
pub enum Policy {
    Other(Fair),
    Batch(Fair),
    Idle(Fair),
    Ext(Fair),
    Fifo(RealTime),
    RoundRobin(RealTime),
    Deadline(Deadline),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fair {
    /// From -20, the largest share, to 19.
    pub nice: i32,
    /// A slice of its own; zero for the machine's default.
    pub slice_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealTime {
    pub priority: u32,
}

/// The parameters of SCHED_DEADLINE, as the kernel has them: others than onbeat may have set them,
/// so nothing is promised about their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    pub runtime_ns: u64,
    pub deadline_ns: u64,
    pub period_ns: u64,
    /// Whether the task may use bandwidth that others leave (GRUB).
    pub reclaim: bool,
    pub overrun_signal: bool,
}

impl Attributes {
    #[must_use]
    pub const fn ordinary(nice: i32, reset_on_fork: bool) -> Self {
        Self {
            policy: Policy::Other(Fair { nice, slice_ns: 0 }),
            reset_on_fork,
        }
    }

    /// The flags that onbeat sets for a reservation: children do not inherit it, and an overrun is
    /// never signalled, because SIGXCPU kills a program that does not expect it.
    #[must_use]
    pub const fn reserved(reservation: Reservation, reclaim: bool) -> Self {
        Self {
            policy: Policy::Deadline(Deadline {
                runtime_ns: reservation.runtime().as_ns(),
                deadline_ns: reservation.deadline().as_ns(),
                period_ns: reservation.period().as_ns(),
                reclaim,
                overrun_signal: false,
            }),
            reset_on_fork: true,
        }
    }

    /// The scheduling of the task `tid`; 0 is the calling thread.
    /// Fails with `ESRCH` if there is no such task, `EINVAL` if it has a policy unknown here.
    pub fn get(tid: u32) -> io::Result<Self> {
        Self::from_raw(&get_raw(tid)?, default_slice_ns())
    }

    pub fn set(&self, tid: u32) -> io::Result<()> {
        set_raw(tid, &self.to_raw())
    }

    fn from_raw(raw: &RawAttributes, default_slice_ns: u64) -> io::Result<Self> {
        let flag = |bit: i32| raw.flags & bit as u64 != 0;
        let fair = Fair {
            nice: raw.nice,
            slice_ns: if raw.runtime_ns == default_slice_ns {
                0
            } else {
                raw.runtime_ns
            },
        };
        let real_time = RealTime {
            priority: raw.priority,
        };
        let policy = match i32::try_from(raw.policy).unwrap_or(-1) {
            libc::SCHED_OTHER => Policy::Other(fair),
            libc::SCHED_BATCH => Policy::Batch(fair),
            libc::SCHED_IDLE => Policy::Idle(fair),
            SCHED_EXT => Policy::Ext(fair),
            libc::SCHED_FIFO => Policy::Fifo(real_time),
            libc::SCHED_RR => Policy::RoundRobin(real_time),
            libc::SCHED_DEADLINE => Policy::Deadline(Deadline {
                runtime_ns: raw.runtime_ns,
                deadline_ns: raw.deadline_ns,
                period_ns: raw.period_ns,
                reclaim: flag(libc::SCHED_FLAG_RECLAIM),
                overrun_signal: flag(libc::SCHED_FLAG_DL_OVERRUN),
            }),
            _ => return Err(io::Error::from_raw_os_error(libc::EINVAL)),
        };
        Ok(Self {
            policy,
            reset_on_fork: flag(libc::SCHED_FLAG_RESET_ON_FORK),
        })
    }

    fn to_raw(self) -> RawAttributes {
        let mut raw = RawAttributes::default();
        if self.reset_on_fork {
            raw.flags |= libc::SCHED_FLAG_RESET_ON_FORK as u64;
        }
        let policy = match self.policy {
            Policy::Other(fair) | Policy::Batch(fair) | Policy::Idle(fair) | Policy::Ext(fair) => {
                raw.nice = fair.nice;
                raw.runtime_ns = fair.slice_ns;
                match self.policy {
                    Policy::Batch(_) => libc::SCHED_BATCH,
                    Policy::Idle(_) => libc::SCHED_IDLE,
                    Policy::Ext(_) => SCHED_EXT,
                    _ => libc::SCHED_OTHER,
                }
            }
            Policy::Fifo(RealTime { priority }) => {
                raw.priority = priority;
                libc::SCHED_FIFO
            }
            Policy::RoundRobin(RealTime { priority }) => {
                raw.priority = priority;
                libc::SCHED_RR
            }
            Policy::Deadline(deadline) => {
                raw.runtime_ns = deadline.runtime_ns;
                raw.deadline_ns = deadline.deadline_ns;
                raw.period_ns = deadline.period_ns;
                if deadline.reclaim {
                    raw.flags |= libc::SCHED_FLAG_RECLAIM as u64;
                }
                if deadline.overrun_signal {
                    raw.flags |= libc::SCHED_FLAG_DL_OVERRUN as u64;
                }
                libc::SCHED_DEADLINE
            }
        };
        raw.policy = policy as u32;
        raw
    }

    const fn fair(&self) -> Option<Fair> {
        match self.policy {
            Policy::Other(fair) | Policy::Batch(fair) | Policy::Idle(fair) | Policy::Ext(fair) => {
                Some(fair)
            }
            _ => None,
        }
    }

    const fn fair_mut(&mut self) -> Option<&mut Fair> {
        match &mut self.policy {
            Policy::Other(fair) | Policy::Batch(fair) | Policy::Idle(fair) | Policy::Ext(fair) => {
                Some(fair)
            }
            _ => None,
        }
    }

    /// As reported by the kernel: a default slice counts as no slice, and before Linux 6.12 each.
    #[must_use]
    pub fn as_reported(mut self) -> Self {
        let default_ns = default_slice_ns();
        if let Some(fair) = self.fair_mut()
            && (default_ns == 0 || fair.slice_ns == default_ns)
        {
            fair.slice_ns = 0;
        }
        self
    }

    #[must_use]
    pub fn nice(&self) -> Option<i32> {
        self.fair().map(|fair| fair.nice)
    }

    #[must_use]
    pub const fn with_nice(mut self, nice: i32) -> Self {
        if let Some(fair) = self.fair_mut() {
            fair.nice = nice;
        }
        self
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.policy {
            Policy::Other(fair) => write!(f, "SCHED_OTHER, nice {}", fair.nice)?,
            Policy::Batch(fair) => write!(f, "SCHED_BATCH, nice {}", fair.nice)?,
            Policy::Idle(fair) => write!(f, "SCHED_IDLE, nice {}", fair.nice)?,
            Policy::Ext(fair) => write!(f, "SCHED_EXT, nice {}", fair.nice)?,
            Policy::Fifo(rt) => write!(f, "SCHED_FIFO, priority {}", rt.priority)?,
            Policy::RoundRobin(rt) => write!(f, "SCHED_RR, priority {}", rt.priority)?,
            Policy::Deadline(deadline) => {
                let span = |ns| Span::from_ns(ns);
                write!(
                    f,
                    "SCHED_DEADLINE, {} within {} every {}",
                    span(deadline.runtime_ns),
                    span(deadline.deadline_ns),
                    span(deadline.period_ns)
                )?;
                if deadline.reclaim {
                    f.write_str(", reclaiming")?;
                }
                if deadline.overrun_signal {
                    f.write_str(", overruns signalled")?;
                }
            }
        }
        if self.reset_on_fork {
            f.write_str(", reset on fork")?;
        }
        Ok(())
    }
}

/// The nice value a task keeps whatever its policy; `renice` of a task under SCHED_DEADLINE shows
/// here alone.
/// Fails with `ESRCH` if there is no such task.
pub fn kept_nice(tid: u32) -> io::Result<i32> {
    // The raw call answers 20 - nice, 1 to 40, so that it needs no errno dance.
    // SAFETY: getpriority takes two numbers and touches no memory.
    let answer = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, tid) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(20 - answer as i32)
}

/// Another program, or the task itself, has given it another policy than `set`, which it had from
/// here. If the nice value of `set` is still there, hidden by a policy without one or shown by one
/// with, or one above it that the task had no right to before: gives it that of `before` instead.
pub(crate) fn put_nice_back(tid: u32, set: &Attributes, before: &Attributes) {
    let (Some(set), Some(before)) = (set.nice(), before.nice()) else {
        return;
    };
    let is_ours = |kept| kept == set || (kept < before && !may_set_nice(tid, kept));
    if kept_nice(tid).is_ok_and(is_ours) {
        // SAFETY: setpriority takes three numbers. Where it fails the task is gone, or not ours to
        // change.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, tid, before) };
    }
}

pub(crate) fn of(task: TaskId) -> Result<Attributes, Refusal> {
    match Attributes::get(task.tid) {
        Ok(now) if task::is_alive(task) => Ok(now),
        Ok(_) => Err(Refusal::Gone),
        Err(error) => Err(task::refused(task.tid, &error)),
    }
}

/// Whether `set` was given to the task that is meant. If that has ended, and its number had already
/// gone to another, that one is made an ordinary task again, as all but a few are born.
pub(crate) fn reached(task: TaskId, set: &Attributes) -> Result<(), Refusal> {
    if task::is_alive(task) {
        return Ok(());
    }
    let is_another = task::identify(task.tid).is_ok_and(|now| now != task);
    if is_another && Attributes::get(task.tid).is_ok_and(|now| now == *set) {
        let nice = set
            .nice()
            .map_or_else(|| kept_nice(task.tid).unwrap_or(0), |_| 0);
        let _ = Attributes::ordinary(nice, false).set(task.tid);
    }
    Err(Refusal::Gone)
}

pub(crate) fn taken_over(now: Attributes) -> Refusal {
    Refusal::TakenOver {
        now: now.to_string(),
    }
}

/// Whether the task may set this nice value itself: by its capability, or by RLIMIT_NICE.
pub(crate) fn may_set_nice(tid: u32, nice: i32) -> bool {
    if may_schedule(tid) {
        return true;
    }
    limit(tid, libc::RLIMIT_NICE)
        .is_some_and(|limit| i64::from(20 - nice) <= limit.try_into().unwrap_or(i64::MAX))
}

/// Whether the task's process may give its threads a real-time priority without a privilege. One
/// that does not tell may.
pub(crate) fn has_priorities(tid: u32) -> bool {
    limit(tid, libc::RLIMIT_RTPRIO) != Some(0)
}

/// The soft limit of the task's process on `resource`; none if it cannot be read. The system call
/// takes CAP_SYS_RESOURCE for another user's process, and the file none.
pub(crate) fn limit(tid: u32, resource: libc::__rlimit_resource_t) -> Option<libc::rlim_t> {
    let line = match resource {
        libc::RLIMIT_NICE => "Max nice priority",
        libc::RLIMIT_RTPRIO => "Max realtime priority",
        libc::RLIMIT_RTTIME => "Max realtime timeout",
        _ => return None,
    };
    let text = fs::read_to_string(format!("/proc/{tid}/limits")).ok()?;
    let mut lines = text.lines();
    let rest = lines.find_map(|text| text.strip_prefix(line))?;
    match rest.split_ascii_whitespace().next()? {
        "unlimited" => Some(libc::RLIM_INFINITY),
        soft => soft.parse().ok(),
    }
}

/// `before`, with the nice value that the task was given under a policy that shows none: the giver
/// of that value has the last word.
pub(crate) fn with_kept_nice(
    before: Attributes,
    now: &Attributes,
    tid: u32,
) -> io::Result<Attributes> {
    match now.nice() {
        Some(_) => Ok(before),
        None => Ok(before.with_nice(kept_nice(tid)?)),
    }
}

/// The slice that the machine gives to a task without one of its own. A kernel that has slices
/// tells a task's as its runtime, and taking it back as one of its own would pin it: so the default
/// must be known. It is asked on a short-lived thread of our own, and cannot differ between tasks.
fn default_slice_ns() -> u64 {
    static SLICE_NS: OnceLock<u64> = OnceLock::new();
    *SLICE_NS.get_or_init(|| {
        let probe = || -> io::Result<u64> {
            let with_nice = |nice| RawAttributes {
                nice,
                ..RawAttributes::default()
            };
            // A program that begins waits for the answer, perhaps beside hogs.
            if set_raw(0, &with_nice(-20)).is_err() {
                set_raw(0, &with_nice(kept_nice(0)?))?;
            }
            Ok(get_raw(0)?.runtime_ns)
        };
        std::thread::scope(|scope| scope.spawn(probe).join())
            .ok()
            .and_then(Result::ok)
            .unwrap_or(0)
    })
}

/// `struct sched_attr` of `include/uapi/linux/sched/types.h`, version 1. Its size is entered where
/// it is given to the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RawAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
    utilisation_min: u32,
    utilisation_max: u32,
}

const RAW_SIZE: u32 = size_of::<RawAttributes>() as u32;
const _: () = assert!(RAW_SIZE == 56, "the layout of sched_attr, version 1");

fn get_raw(tid: u32) -> io::Result<RawAttributes> {
    let mut raw = RawAttributes::default();
    // SAFETY: `raw` is a valid, exclusively borrowed buffer of RAW_SIZE bytes; the kernel writes at
    // most that many, and any bytes it writes are valid integers.
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut raw, RAW_SIZE, 0_u32) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(raw)
}

fn set_raw(tid: u32, raw: &RawAttributes) -> io::Result<()> {
    // SAFETY: `raw` is a valid buffer of the size its first field says; the kernel reads it, and
    // writes to `size` only when it answers E2BIG, which a version 1 structure never causes on a
    // kernel that has SCHED_DEADLINE with clamps; older ones would need the field, so a copy is
    // given.
    let answer = unsafe {
        let mut copy = RawAttributes {
            size: RAW_SIZE,
            ..*raw
        };
        libc::syscall(libc::SYS_sched_setattr, tid, &raw mut copy, 0_u32)
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
