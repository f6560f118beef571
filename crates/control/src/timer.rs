//! What is to be looked at again, and when: a queue ordered by time, so that a turn of the loop
//! touches the threads that are due and no others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onbeat_model::{Instant, TaskId};

/// What is to be looked at when its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerEvent {
    /// Does the thread rest, and is it still ours?
    Look(TaskId),
    /// The actuator can be asked for it again.
    Retry(TaskId),
    /// It has yet to be given back what it had.
    GiveBack(TaskId),
    /// Its CPU time is to be sampled.
    Sample(TaskId),
    /// Does it starve?
    Starves(TaskId),
    /// A thread without a rhythm has had its chance.
    ProbationOver(TaskId),
    /// It said that it missed a deadline, and may have a boost.
    Boost(TaskId),
    /// Which threads are protected?
    Protection,
    /// There may be room again.
    Widen,
}

/// Things to do, each at its time; things of one time in the order in which they were put in.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    put_in: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Instant,
    order: u64,
    what: T,
}

impl<T> Timers<T> {
    pub(crate) const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            put_in: 0,
        }
    }

    /// `what` is due at `at`.
    pub(crate) fn set(&mut self, at: Instant, what: T) {
        self.heap.push(Reverse(Entry {
            at,
            order: self.put_in,
            what,
        }));
        self.put_in += 1;
    }

    /// The next thing that is due at `now`, if one is.
    pub(crate) fn due(&mut self, now: Instant) -> Option<T> {
        if self.heap.peek()?.0.at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.what)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_out_when_due_in_order_of_time_and_then_of_arrival() {
        let mut timers = Timers::new();
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
