//! Finds a thread's slot by its identity with one cheap look-up, for it happens at every event.
//!
//! Slots of threads that ended are used again; whatever is to outlive a thread names it by its
//! identity.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use onbeat_model::TaskId;

/// Where in the controller's list a thread is.
pub(crate) type Slot = usize;

/// From identity to slot.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    slots: HashMap<TaskId, Slot, BuildHasherDefault<TaskHasher>>,
    /// Wakers are told by their numbers alone.
    living: HashMap<u32, TaskId, BuildHasherDefault<TaskHasher>>,
    /// The numbers of those that ended last.
    left: VecDeque<u32>,
}

/// So many that ended are remembered: those that a shell waits for in the time over which its wakers are counted.
const LEFT_MOST: usize = 256;

impl Roster {
    pub(crate) fn find(&self, task: TaskId) -> Option<Slot> {
        self.slots.get(&task).copied()
    }

    /// Where the thread is that has this number now.
    pub(crate) fn find_number(&self, tid: u32) -> Option<Slot> {
        self.find(*self.living.get(&tid)?)
    }

    /// How many threads there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn enter(&mut self, task: TaskId, slot: Slot) {
        self.slots.insert(task, slot);
        self.living.insert(task.tid, task);
    }

    pub(crate) fn leave(&mut self, task: TaskId) {
        self.slots.remove(&task);
        if self.living.get(&task.tid) == Some(&task) {
            self.living.remove(&task.tid);
        }
        if self.left.len() == LEFT_MOST {
            self.left.pop_front();
        }
        self.left.push_back(task.tid);
    }

    /// Whether this was the number of a thread that was here, and ended not long ago.
    pub(crate) fn has_left(&self, tid: u32) -> bool {
        tid != 0 && self.left.contains(&tid)
    }
}

/// Mixes a thread's number and start time by one multiplication each (Fibonacci hashing, Knuth
/// 6.4). Nobody can choose thread numbers and start times to collide in bulk, which is what the
/// standard library's slower hash defends against.
#[derive(Debug, Default)]
pub(crate) struct TaskHasher(u64);

impl TaskHasher {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for TaskHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.mix(u64::from(byte));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_number_is_another_thread() {
        let mut roster = Roster::default();
        let first = TaskId {
            tid: 7,
            started_ticks: 1,
        };
        let second = TaskId {
            tid: 7,
            started_ticks: 2,
        };
        roster.enter(first, 0);
        assert_eq!(roster.find(second), None);
        roster.enter(second, 1);
        assert_eq!(
            (roster.find(first), roster.find(second)),
            (Some(0), Some(1))
        );
        assert_eq!(roster.find_number(7), Some(1));
        roster.leave(first);
        assert_eq!(roster.find_number(7), Some(1), "the number is the other's");
        roster.leave(second);
        assert_eq!(roster.find_number(7), None);
    }
}
