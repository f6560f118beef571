//! One unit of a periodic thread's work: a frame, a buffer, a control step.

use serde::{Deserialize, Serialize};

use crate::{Burst, Instant, Span, TaskId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    #[serde(flatten)]
    pub task: TaskId,
    /// When it was due to begin: its beat.
    #[serde(rename = "release_ns")]
    pub release: Instant,
    #[serde(rename = "woke_ns")]
    pub woke: Instant,
    #[serde(rename = "started_ns")]
    pub started: Instant,
    #[serde(rename = "ended_ns")]
    pub ended: Instant,
    #[serde(rename = "executed_ns")]
    pub executed: Span,
    /// How long its bursts were ready and had no CPU; zero if that is not known.
    #[serde(rename = "waited_ns")]
    pub waited: Span,
    /// Its deadline: the next release.
    #[serde(rename = "deadline_ns")]
    pub deadline: Instant,
    pub bursts: u32,
    pub exhausted: bool,
}

impl Job {
    #[must_use]
    pub fn of(burst: &Burst, release: Instant, deadline: Instant) -> Self {
        Self {
            task: burst.task,
            release,
            woke: burst.woke,
            started: burst.first_ran,
            ended: burst.blocked,
            executed: burst.executed,
            waited: burst.waited(),
            deadline,
            bursts: 1,
            exhausted: burst.exhausted,
        }
    }

    /// From the release (or the wakeup, if that came first) to the end.
    #[must_use]
    pub fn response_time(&self) -> Span {
        self.ended.since(self.release.min(self.woke))
    }

    #[must_use]
    pub fn missed(&self) -> bool {
        self.ended > self.deadline
    }
}
