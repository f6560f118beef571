//! Timers: a queue ordered by time, so that a turn of the loop touches only the threads that are
//! due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onbeat_model::{Instant, Span, TaskId};

/// The time between two reviews of what takes a look at all threads.
pub(crate) const QUARTER: Span = Span::from_ms(250);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimerEvent {
    /// Check whether the thread is silent, and still has its reservation.
    Check(TaskId),
    Retry(TaskId),
    Protection,
    /// Try whether the kernel has more room.
    RetryAdmission,
}

/// Those of one time are due in the order in which they were set.
#[derive(Debug, Default)]
pub(crate) struct TimerQueue {
    heap: BinaryHeap<Reverse<(Instant, u64, TimerEvent)>>,
    set: u64,
}

impl TimerQueue {
    pub(crate) fn set(&mut self, at: Instant, event: TimerEvent) {
        self.heap.push(Reverse((at, self.set, event)));
        self.set += 1;
    }

    pub(crate) fn due(&mut self, now: Instant) -> Option<TimerEvent> {
        self.heap.peek().filter(|first| first.0.0 <= now)?;
        self.heap.pop().map(|Reverse((_, _, event))| event)
    }
}
