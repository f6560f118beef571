//! One stretch of a thread's activity, from being woken to going back to sleep.

use serde::{Deserialize, Serialize};

use crate::{Instant, Span, TaskId};

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
    /// When it first got a CPU.
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
