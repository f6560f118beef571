//! Timers: a queue ordered by time, so that a turn of the loop touches only the threads that are
//! due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onbeat_model::{Instant, TaskId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerEvent {
    /// Check whether the thread is silent, and still has its reservation.
    Check(TaskId),
    Retry(TaskId),
    RetryRelease(TaskId),
    Sample(TaskId),
    Protection,
    /// Try whether the kernel has more room.
    RetryAdmission,
}

/// Timers, each with its time. Those of one time are due in the order in which they were set.
#[derive(Debug)]
pub(crate) struct TimerQueue<T> {
    heap: BinaryHeap<Reverse<TimerEntry<T>>>,
    put_in: u64,
}

#[derive(Debug)]
struct TimerEntry<T> {
    at: Instant,
    order: u64,
    what: T,
}

impl<T> TimerQueue<T> {
    pub(crate) const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            put_in: 0,
        }
    }

    pub(crate) fn set(&mut self, at: Instant, what: T) {
        self.heap.push(Reverse(TimerEntry {
            at,
            order: self.put_in,
            what,
        }));
        self.put_in += 1;
    }

    pub(crate) fn due(&mut self, now: Instant) -> Option<T> {
        if self.heap.peek()?.0.at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.what)
    }
}

impl<T> PartialEq for TimerEntry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl<T> Eq for TimerEntry<T> {}

impl<T> PartialOrd for TimerEntry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for TimerEntry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_out_when_due_in_order_of_time_and_then_of_arrival() {
        let mut timers = TimerQueue::new();
        for (at, what) in [(30, 'd'), (10, 'a'), (20, 'b'), (20, 'c')] {
            timers.set(Instant::from_ns(at), what);
        }
        let now = Instant::from_ns(20);
        let due: String = std::iter::from_fn(|| timers.due(now)).collect();
        assert_eq!(due, "abc");
        assert_eq!(timers.due(Instant::from_ns(29)), None);
        assert_eq!(timers.due(Instant::from_ns(30)), Some('d'));
        assert_eq!(timers.due(Instant::from_ns(99)), None);
    }
}
