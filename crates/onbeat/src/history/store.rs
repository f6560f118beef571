//! The bursts and jobs of each thread that are kept, in 16 MiB: however many threads come and
//! go, and however they take turns.
//!
//! The threads have equal shares. A list grows as its thread needs it; what one thread had while
//! they were few is cut to its share when the whole has become too much, the oldest first, and a
//! thread that ended makes room for one that comes.

use std::collections::{HashMap, VecDeque};

use onbeat_model::{Burst, Event, Instant, Job, Task, TaskId};
use serde::Serialize;

const MOST_BYTES: usize = 16 << 20;
pub(super) const MOST_BURSTS: usize = 8192;
const MOST_THREADS: usize = 256;
const FIRST_ROOM: usize = 16;

#[derive(Default)]
pub(super) struct Store {
    threads: HashMap<TaskId, StoredThread>,
    /// Those of them that have ended, each once, the first one first.
    ended: VecDeque<TaskId>,
    bytes: usize,
    dropped: DroppedBursts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct DroppedBursts {
    /// Threads of which nothing is.
    threads: u64,
    /// Bursts, theirs and older ones of the others.
    bursts: u64,
}

pub(super) struct StoredThread {
    pub(super) task: Task,
    pub(super) bursts: VecDeque<Burst>,
    pub(super) exhausted: VecDeque<Instant>,
    pub(super) jobs: VecDeque<Job>,
    pub(super) counted_from: Option<Instant>,
}

impl Store {
    pub(super) fn threads(&self) -> impl Iterator<Item = &StoredThread> {
        self.threads.values()
    }

    pub(super) const fn dropped(&self) -> DroppedBursts {
        self.dropped
    }

    pub(super) fn hear(&mut self, event: &Event) {
        match *event {
            Event::Tracked { task, .. } | Event::Renamed { task, .. } => {
                let begins = matches!(event, Event::Tracked { .. });
                if let Some(thread) = self.threads.get_mut(&task.id) {
                    thread.task = task;
                    if begins {
                        self.ended.retain(|ended| *ended != task.id);
                    }
                } else if begins {
                    self.begin(task);
                }
            }
            Event::Exited { task, .. }
                if self.threads.contains_key(&task) && !self.ended.contains(&task) =>
            {
                self.ended.push_back(task);
            }
            Event::Burst(burst) => match self.with_room(burst.task, |thread| &mut thread.bursts) {
                Some(thread) => {
                    self.dropped.bursts += push(&mut thread.bursts, burst);
                }
                None => self.dropped.bursts += 1,
            },
            Event::Exhausted { at, task } => {
                if let Some(thread) = self.with_room(task, |thread| &mut thread.exhausted) {
                    push(&mut thread.exhausted, at);
                }
            }
            _ => {}
        }
    }

    pub(super) fn count(&mut self, job: Job) {
        if let Some(thread) = self.with_room(job.task, |thread| &mut thread.jobs) {
            thread.counted_from.get_or_insert(job.release.min(job.woke));
            push(&mut thread.jobs, job);
        }
    }

    /// A thread that was not known. If there are too many, the one that ended first is dropped for
    /// it.
    fn begin(&mut self, task: Task) {
        if self.threads.len() >= MOST_THREADS {
            self.dropped.threads += 1;
            let Some(thread) = self.take_ended() else {
                return;
            };
            self.bytes -= thread.bytes();
            self.dropped.bursts += thread.bursts.len() as u64;
        }
        let thread = StoredThread {
            task,
            bursts: VecDeque::new(),
            exhausted: VecDeque::new(),
            jobs: VecDeque::new(),
            counted_from: None,
        };
        self.threads.insert(task.id, thread);
    }

    fn take_ended(&mut self) -> Option<StoredThread> {
        while let Some(ended) = self.ended.pop_front() {
            if let Some(thread) = self.threads.remove(&ended) {
                return Some(thread);
            }
        }
        None
    }

    /// The thread, with room for one more in its list, as far as it may have that.
    fn with_room<T>(
        &mut self,
        task: TaskId,
        list: impl Fn(&mut StoredThread) -> &mut VecDeque<T>,
    ) -> Option<&mut StoredThread> {
        let most = share_of(self.threads.len());
        let of_thread = list(self.threads.get_mut(&task)?);
        let (len, room) = (of_thread.len(), of_thread.capacity());
        if len < room || len >= most {
            return self.threads.get_mut(&task);
        }
        let wanted = (2 * room).clamp(FIRST_ROOM, most) - len;
        if self.bytes + wanted * size_of::<T>() > MOST_BYTES {
            self.cut();
        }
        let thread = self.threads.get_mut(&task)?;
        self.bytes -= thread.bytes();
        list(thread).reserve_exact(wanted);
        self.bytes += thread.bytes();
        Some(thread)
    }

    /// No thread has more than its share, and some room is left for the threads to come.
    fn cut(&mut self) {
        let threads = self.threads.len();
        let most = share_of(threads + threads / 8);
        for thread in self.threads.values_mut() {
            self.bytes -= thread.bytes();
            self.dropped.bursts += keep_last(&mut thread.bursts, most);
            keep_last(&mut thread.exhausted, most);
            keep_last(&mut thread.jobs, most);
            self.bytes += thread.bytes();
        }
    }
}

impl StoredThread {
    fn bytes(&self) -> usize {
        self.bursts.capacity() * size_of::<Burst>()
            + self.exhausted.capacity() * size_of::<Instant>()
            + self.jobs.capacity() * size_of::<Job>()
    }
}

fn share_of(threads: usize) -> usize {
    let each = MOST_BYTES / threads.max(1);
    (each / (size_of::<Burst>() + size_of::<Instant>() + size_of::<Job>())).min(MOST_BURSTS)
}

/// Adds the newest, in the place of the oldest if there is no room. How many were dropped.
fn push<T>(list: &mut VecDeque<T>, item: T) -> u64 {
    let is_full = list.len() == list.capacity();
    if is_full {
        list.pop_front();
    }
    list.push_back(item);
    u64::from(is_full)
}

/// Drops all but the last `most`, with their memory. How many were dropped.
fn keep_last<T>(list: &mut VecDeque<T>, most: usize) -> u64 {
    let over = list.len().saturating_sub(most);
    list.drain(..over);
    if list.capacity() > most {
        list.shrink_to(most);
    }
    over as u64
}

#[cfg(test)]
mod tests {
    use onbeat_model::{Name, Span};

    use super::*;

    /// The size of the lists, counted anew.
    fn taken(store: &Store) -> usize {
        store.threads().map(StoredThread::bytes).sum()
    }

    fn id(tid: u32) -> TaskId {
        TaskId::recorded(tid)
    }

    fn begins(store: &mut Store, tid: u32) {
        store.hear(&Event::Tracked {
            at: Instant::ZERO,
            task: Task {
                id: id(tid),
                pid: tid,
                comm: Name::default(),
            },
        });
    }

    fn ends(store: &mut Store, tid: u32) {
        let at = Instant::ZERO;
        store.hear(&Event::Exited { at, task: id(tid) });
    }

    /// This number of bursts, each of which uses its budget up.
    fn works(store: &mut Store, tid: u32, bursts: u64) {
        for n in 0..bursts {
            let at = Instant::ZERO + Span::from_ms(n);
            store.hear(&Event::Burst(Burst {
                exhausted: true,
                ..Burst::pulse(id(tid), at)
            }));
            store.hear(&Event::Exhausted { at, task: id(tid) });
            assert!(store.bytes <= MOST_BYTES, "{}", store.bytes);
        }
        assert_eq!(store.bytes, taken(store));
    }

    fn kept(store: &Store) -> u64 {
        let kept = store.threads().map(|thread| thread.bursts.len() as u64);
        kept.sum()
    }

    #[test]
    fn threads_that_come_and_go_one_after_another_stay_within_the_bound() {
        let mut store = Store::default();
        // The first ones could have a list of the greatest length each.
        let bursts = |tid| if tid < 20 { 9000 } else { 700 };
        for tid in 0..600 {
            begins(&mut store, tid);
            works(&mut store, tid, bursts(tid));
            ends(&mut store, tid);
        }
        assert_eq!(store.threads.len(), 256);
        assert!(store.threads.contains_key(&id(599)));
        assert!(!store.threads.contains_key(&id(0)), "it ended first");
        let dropped = store.dropped();
        assert_eq!(dropped.threads, 600 - 256);
        let heard: u64 = (0..600).map(bursts).sum();
        assert_eq!(dropped.bursts, heard - kept(&store));
    }

    #[test]
    fn threads_that_work_by_turns_stay_within_the_bound_and_each_keeps_its_last_bursts() {
        let mut store = Store::default();
        for tid in 0..300 {
            begins(&mut store, tid);
        }
        for turn in 1..=10 {
            for tid in 0..300 {
                works(&mut store, tid, 60 * turn);
            }
        }
        assert_eq!(store.dropped().threads, 300 - 256);
        let heard = 300 * (1..=10).map(|turn| 60 * turn).sum::<u64>();
        assert_eq!(store.dropped().bursts, heard - kept(&store));
        for thread in store.threads() {
            assert!(thread.bursts.len() > 256, "{}", thread.bursts.len());
            assert_eq!(
                thread.bursts.back().unwrap().woke,
                Instant::ZERO + Span::from_ms(599)
            );
        }
    }
}
