//! The record of one tracked thread: its identity, how it is treated, what is known of its period,
//! and its account.
//!
//! The parts of the loop that act on threads have their states of a thread in tables of their own
//! ([`BySlot`]): its request, what is in force, its protection, its role in pipelines.

pub(crate) mod clock;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use onbeat_model::{Bandwidth, Instant, Task, TaskId};

use crate::estimation::Estimator;
use crate::report::account::ThreadAccount;
use crate::report::application::REMEMBERED;
use crate::{Party, Settings, Treatment};

pub(crate) struct TrackedThread {
    pub(crate) task: Task,
    pub(crate) party: Party,
    treatment: Option<Treatment>,
    /// It is not tracked, and here only because of its reservation.
    pub(crate) unheard: bool,
    pub(crate) yields: bool,
    /// A timer is set to look at it.
    pub(crate) looked_after: bool,
    pub(crate) estimator: Estimator,
    pub(crate) account: ThreadAccount,
}

impl TrackedThread {
    pub(crate) fn new(task: Task, at: Instant, settings: &Settings) -> Self {
        Self {
            task,
            party: (settings.parties)(task.id),
            treatment: None,
            unheard: false,
            yields: false,
            looked_after: false,
            estimator: Estimator::new(at),
            account: ThreadAccount {
                listener: settings.jobs.clone(),
                ..ThreadAccount::default()
            },
        }
    }

    /// How it is treated, which is asked for the first time only.
    pub(crate) fn treatment(&mut self, settings: &Settings) -> Treatment {
        let task = &self.task;
        *self.treatment.get_or_insert_with(|| (settings.treat)(task))
    }

    pub(crate) fn application(&self) -> u32 {
        self.party.application.unwrap_or(self.task.pid)
    }

    pub(crate) fn ceiling(&self, ceiling: Option<Bandwidth>) -> Option<Bandwidth> {
        let cap = self.treatment.and_then(|treatment| treatment.cap);
        ceiling.into_iter().chain(cap).min()
    }

    pub(crate) fn forget_treatment(&mut self) {
        self.treatment = None;
    }

    /// Forgets its work, because it is no longer tracked.
    pub(crate) fn stop_listening(&mut self) {
        self.estimator.forget();
        self.unheard = true;
    }

    /// When to set the one timer that looks at it; none if that is set, or there is nothing to look
    /// for.
    pub(crate) fn look_due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.estimator.rests_at(now);
        let due = due.filter(|_| !self.looked_after)?;
        self.looked_after = true;
        Some(due)
    }
}

#[derive(Default)]
pub(crate) struct TaskTable {
    threads: Vec<Option<Box<TrackedThread>>>,
    free: Vec<Slot>,
    index: Index,
}

impl TaskTable {
    pub(crate) fn find(&self, task: TaskId) -> Option<Slot> {
        self.index.find(task)
    }

    pub(crate) fn find_number(&self, tid: u32) -> Option<Slot> {
        self.index.find_number(tid)
    }

    /// True if a thread of this number ended lately.
    pub(crate) fn has_left(&self, tid: u32) -> bool {
        tid != 0 && self.index.left.iter().any(|task| task.tid == tid)
    }

    /// True if the thread was removed; late events of it are ignored.
    pub(crate) fn is_gone(&self, task: TaskId) -> bool {
        self.find(task).is_none() && self.index.left.contains(&task)
    }

    pub(crate) fn slots(&self) -> Range<Slot> {
        0..self.threads.len()
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&TrackedThread> {
        self.threads.get(slot)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut TrackedThread> {
        self.threads.get_mut(slot)?.as_deref_mut()
    }

    pub(crate) fn with_id(&self, task: TaskId) -> Option<&TrackedThread> {
        self.get(self.find(task)?)
    }

    pub(crate) fn with_id_mut(&mut self, task: TaskId) -> Option<&mut TrackedThread> {
        self.get_mut(self.find(task)?)
    }

    pub(crate) fn of_process(&self, pid: u32) -> impl Iterator<Item = (Slot, &TrackedThread)> {
        self.iter()
            .filter(move |(_, thread)| thread.task.pid == pid)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &TrackedThread)> {
        let threads = self.threads.iter().enumerate();
        threads.filter_map(|(slot, thread)| Some((slot, thread.as_deref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Slot, &mut TrackedThread)> {
        let threads = self.threads.iter_mut().enumerate();
        threads.filter_map(|(slot, thread)| Some((slot, thread.as_deref_mut()?)))
    }

    pub(crate) fn enter(&mut self, thread: TrackedThread) -> Slot {
        let task = thread.task.id;
        let thread = Some(Box::new(thread));
        let slot = match self.free.pop() {
            Some(slot) => {
                if let Some(empty) = self.threads.get_mut(slot) {
                    *empty = thread;
                }
                slot
            }
            None => {
                self.threads.push(thread);
                self.threads.len() - 1
            }
        };
        self.index.enter(task, slot);
        slot
    }

    /// The thread is no longer found by its identity, and still in its slot.
    pub(crate) fn leave(&mut self, task: TaskId) {
        self.index.leave(task);
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<Box<TrackedThread>> {
        let thread = self.threads.get_mut(slot)?.take();
        if thread.is_some() {
            self.free.push(slot);
        }
        thread
    }
}

#[derive(Debug, Default)]
struct Index {
    slots: HashMap<TaskId, Slot>,
    /// Wakers are known by their numbers alone.
    living: HashMap<u32, TaskId>,
    /// Those that ended, or were let go, last: a shell waits for more than one of them in the time
    /// over which its wakers are counted.
    left: VecDeque<TaskId>,
}

impl Index {
    fn find(&self, task: TaskId) -> Option<Slot> {
        self.slots.get(&task).copied()
    }

    fn find_number(&self, tid: u32) -> Option<Slot> {
        self.find(*self.living.get(&tid)?)
    }

    fn enter(&mut self, task: TaskId, slot: Slot) {
        self.slots.insert(task, slot);
        self.living.insert(task.tid, task);
    }

    fn leave(&mut self, task: TaskId) {
        self.slots.remove(&task);
        if self.living.get(&task.tid) == Some(&task) {
            self.living.remove(&task.tid);
        }
        if self.left.len() == REMEMBERED {
            self.left.pop_front();
        }
        self.left.push_back(task);
    }
}

// The parts of the loop keep their states of one thread by its slot, which is used again after the
// thread's end. Each part has a [`BySlot`] with its own state of each thread, which nothing outside
// the part can write.

pub(crate) type Slot = usize;

/// One part's state of each thread.
#[derive(Debug)]
pub(crate) struct BySlot<T> {
    states: Vec<T>,
    /// The state of a thread that the part knows nothing of.
    none: T,
}

impl<T: Default> Default for BySlot<T> {
    fn default() -> Self {
        Self {
            states: Vec::new(),
            none: T::default(),
        }
    }
}

impl<T: Default> BySlot<T> {
    pub(crate) fn get(&self, slot: Slot) -> &T {
        self.states.get(slot).unwrap_or(&self.none)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        self.states.iter().enumerate()
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut T {
        if slot >= self.states.len() {
            self.states.resize_with(slot + 1, T::default);
        }
        // The fallback is there for the compiler: the line above has made the slot.
        self.states.get_mut(slot).unwrap_or(&mut self.none)
    }

    /// Takes the state out, because the thread is gone.
    pub(crate) fn take(&mut self, slot: Slot) -> T {
        self.states
            .get_mut(slot)
            .map(std::mem::take)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_number_is_another_thread() {
        let mut index = Index::default();
        let first = TaskId {
            tid: 7,
            started_ticks: 1,
        };
        let second = TaskId {
            tid: 7,
            started_ticks: 2,
        };
        index.enter(first, 0);
        assert_eq!(index.find(second), None);
        index.enter(second, 1);
        assert_eq!((index.find(first), index.find(second)), (Some(0), Some(1)));
        assert_eq!(index.find_number(7), Some(1));
        index.leave(first);
        assert_eq!(index.find_number(7), Some(1), "the number is the other's");
        index.leave(second);
        assert_eq!(index.find_number(7), None);
    }
}
