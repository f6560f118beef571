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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Said;

    #[test]
    fn an_event_reads_back_from_one_flat_json_line_with_units_in_its_names() {
        let event = Event::Burst(Burst {
            task: TaskId {
                tid: 7,
                started_ticks: 9,
            },
            woke: Instant::from_ns(1),
            first_ran: Instant::from_ns(2),
            blocked: Instant::from_ns(3),
            executed: Span::from_ns(1),
            preempted: 0,
            waker: 0,
            exhausted: false,
            expiry: None,
        });
        let line = serde_json::to_string(&event).unwrap();
        assert!(
            line.starts_with(r#"{"event":"burst","tid":7,"started_ticks":9,"woke_ns":1"#),
            "{line}"
        );
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }

    #[test]
    fn who_was_woken_stands_inside_the_line_of_who_woke_it() {
        let event = Event::Woke {
            at: Instant::from_ns(4),
            task: TaskId::recorded(7),
            wakee: Task {
                id: TaskId::recorded(9),
                pid: 8,
                comm: "Xvfb".into(),
            },
            count: 3,
        };
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(
            line,
            concat!(
                r#"{"event":"woke","at_ns":4,"tid":7,"started_ticks":0,"#,
                r#""wakee":{"tid":9,"started_ticks":0,"pid":8,"comm":"Xvfb"},"count":3}"#
            )
        );
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }

    #[test]
    fn a_mark_is_one_flat_json_line_with_what_was_said() {
        let event = Event::Marked(Mark {
            at: Instant::from_ns(4),
            task: TaskId::recorded(7),
            woke: Instant::from_ns(1),
            executed: Span::from_ns(3),
            said: Said::RealTimeStarted {
                period: Span::from_ns(9),
                permille: 950,
            },
        });
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(
            line,
            concat!(
                r#"{"event":"marked","at_ns":4,"tid":7,"started_ticks":0,"woke_ns":1,"#,
                r#""executed_ns":3,"said":"real_time_started","period_ns":9,"permille":950}"#
            )
        );
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }
}
