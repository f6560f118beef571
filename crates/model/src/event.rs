//! The events of a sensor: bursts, marks, and what else happens to a task.

use serde::{Deserialize, Serialize};

use crate::{Instant, Span, Task, TaskId};

/// Something that happened to a tracked task, with its time inside: events of different CPUs may
/// arrive out of order, those of one task never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A task is tracked from now on: because it was asked for, or a tracked one started it.
    Tracked {
        #[serde(rename = "at_ns")]
        at: Instant,
        #[serde(flatten)]
        task: Task,
    },
    Renamed {
        #[serde(rename = "at_ns")]
        at: Instant,
        #[serde(flatten)]
        task: Task,
    },
    Burst(Burst),
    /// A task's budget ran out just now, in the middle of a burst; the burst's own record follows
    /// when the task blocks.
    Exhausted {
        #[serde(rename = "at_ns")]
        at: Instant,
        #[serde(flatten)]
        task: TaskId,
    },
    /// A task gave up the rest of its budget by `sched_yield()`, and waits for the next.
    Yielded {
        #[serde(rename = "at_ns")]
        at: Instant,
        #[serde(flatten)]
        task: TaskId,
    },
    /// A task was ready and did not run, while a thread of another process had the CPU.
    Waited {
        #[serde(rename = "at_ns")]
        at: Instant,
        #[serde(flatten)]
        task: TaskId,
        /// For how long that thread ran meanwhile.
        #[serde(rename = "waited_ns")]
        waited: Span,
        /// Its process; zero for many threads, each of which had it for a moment.
        behind: u32,
    },
    /// A task became ready. Only when raw wakeups were asked for.
    Wakeup {
        #[serde(rename = "at_ns")]
        at: Instant,
        #[serde(flatten)]
        task: TaskId,
        /// The thread that woke it; zero if an interrupt did.
        waker: u32,
    },
    /// A tracked task woke a thread that is not tracked. Only when partners were asked for; told a
    /// few times a second, of all its wakeups in between.
    Woke {
        #[serde(rename = "at_ns")]
        at: Instant,
        #[serde(flatten)]
        task: TaskId,
        /// The thread that was woken: none of the kernel's.
        wakee: Task,
        /// How often, since this was last told.
        count: u64,
    },
    /// A task said something of its own work.
    Marked(Mark),
    /// A task said more than is listened to: `count` marks before this one are missing.
    Suppressed {
        #[serde(rename = "at_ns")]
        at: Instant,
        #[serde(flatten)]
        task: TaskId,
        count: u32,
    },
    Exited {
        #[serde(rename = "at_ns")]
        at: Instant,
        #[serde(flatten)]
        task: TaskId,
    },
    /// The sensor could not keep up: `count` events before this one are missing.
    Lost {
        #[serde(rename = "at_ns")]
        at: Instant,
        count: u64,
    },
}

impl Event {
    #[must_use]
    pub const fn at(&self) -> Instant {
        match self {
            Self::Burst(burst) => burst.blocked,
            Self::Marked(mark) => mark.at,
            Self::Tracked { at, .. }
            | Self::Renamed { at, .. }
            | Self::Exhausted { at, .. }
            | Self::Yielded { at, .. }
            | Self::Waited { at, .. }
            | Self::Wakeup { at, .. }
            | Self::Woke { at, .. }
            | Self::Suppressed { at, .. }
            | Self::Exited { at, .. }
            | Self::Lost { at, .. } => *at,
        }
    }

    #[must_use]
    pub const fn task(&self) -> Option<TaskId> {
        match self {
            Self::Tracked { task, .. } | Self::Renamed { task, .. } => Some(task.id),
            Self::Burst(burst) => Some(burst.task),
            Self::Marked(mark) => Some(mark.task),
            Self::Exhausted { task, .. }
            | Self::Yielded { task, .. }
            | Self::Waited { task, .. }
            | Self::Wakeup { task, .. }
            | Self::Woke { task, .. }
            | Self::Suppressed { task, .. }
            | Self::Exited { task, .. } => Some(*task),
            Self::Lost { .. } => None,
        }
    }
}

/// The work of a thread between a wakeup and the next time it blocked, or asked to sleep until a
/// time that was over.
///
/// A job of a periodic thread is one burst or several: a player's frame may wait for its decoder,
/// for the display and for the clock in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    #[serde(flatten)]
    pub task: TaskId,
    #[serde(rename = "woke_ns")]
    pub woke: Instant,
    #[serde(rename = "first_ran_ns")]
    pub first_ran: Instant,
    #[serde(rename = "blocked_ns")]
    pub blocked: Instant,
    /// The CPU time it took, without the time it waited for a CPU.
    #[serde(rename = "executed_ns")]
    pub executed: Span,
    /// How often it lost the CPU while it still wanted to run.
    pub preempted: u32,
    /// The thread that woke it; zero if an interrupt or an unknown thread did; itself if it waited
    /// for a disk, as far as that is known.
    pub waker: u32,
    /// Its reservation's budget ran out meanwhile, and it had to wait for the next period.
    pub exhausted: bool,
    /// The time for which the timer was set that woke it; none if something else did, or if that is
    /// not known. It is the release of a thread that sleeps until absolute times, also if the
    /// thread was late to sleep and its timer had long expired.
    #[serde(rename = "expiry_ns", default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Instant>,
}

impl Burst {
    /// A burst of which nothing is known but when it woke: it has no length.
    #[must_use]
    pub const fn pulse(task: TaskId, at: Instant) -> Self {
        Self {
            task,
            woke: at,
            first_ran: at,
            blocked: at,
            executed: Span::ZERO,
            preempted: 0,
            waker: 0,
            exhausted: false,
            expiry: None,
        }
    }

    #[must_use]
    pub fn alone(task: TaskId, woke: Instant, executed: Span) -> Self {
        Self {
            blocked: woke + executed,
            executed,
            ..Self::pulse(task, woke)
        }
    }

    #[must_use]
    pub const fn response(&self) -> Span {
        self.blocked.since(self.woke)
    }

    #[must_use]
    pub fn waited(&self) -> Span {
        self.response() - self.executed
    }
}

/// One call of `<onbeat/job.h>` or `<onbeat/mdn.h>`.
///
/// The kernel names the thread and the time, so no thread can speak for another; what is said is
/// untrusted all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    #[serde(rename = "at_ns")]
    pub at: Instant,
    #[serde(flatten)]
    pub task: TaskId,
    #[serde(rename = "woke_ns")]
    pub woke: Instant,
    #[serde(rename = "executed_ns")]
    pub executed: Span,
    #[serde(flatten)]
    pub said: Said,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    /// A job begins (AQuoSA, `qmgr_begin_cycle`).
    JobBegan,
    /// The job has ended (AQuoSA, `qmgr_end_cycle`; GRACE-OS, `finish_job`).
    JobEnded,
    /// A deadline was missed just now (Banachowski, Wu and Brandt, section 2).
    MissedDeadline,
    RealTimeStarted {
        #[serde(rename = "period_ns")]
        period: Span,
        /// The number of jobs in a thousand that are to meet their deadline: rho.
        permille: u32,
    },
    RealTimeExited,
}
