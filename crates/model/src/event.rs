//! The events of a sensor.

use serde::{Deserialize, Serialize};

use crate::{Burst, Instant, Mark, Span, Task, TaskId};

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
    /// A tracked task took another name (by `exec` or `prctl`).
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
        /// Its process.
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
