//! The threads that are followed by a tracer that hears switches outside the kernel (tracefs,
//! perf): the tasks, the tasks that they start, and their bursts.

mod process;

use std::collections::HashMap;

use onbeat_model::{Burst, Event, Follow, Instant, Name, Task, TaskId};

pub(crate) use process::{ThreadStatus, threads_of};

use crate::burst_builder::{BurstState, Wakeup};
use onbeat_kernel::clock;
use onbeat_kernel::proc::started_ticks;

const LOOKS_EVERY: onbeat_model::Span = onbeat_model::Span::from_ms(100);

/// Turns what is heard of threads into events of those that are followed; hears of others, too, and
/// forgets it.
#[derive(Debug, Default)]
pub struct Followed {
    threads: HashMap<u32, FollowedThread>,
    /// The thread that was last seen to get each CPU.
    occupants: HashMap<u32, u32>,
    has_followed: bool,
    /// Events were lost since threads were looked up.
    is_unsure: bool,
    looked: Instant,
}

#[derive(Debug)]
struct FollowedThread {
    task: Task,
    follow: Follow,
    state: BurstState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadStart {
    pub(crate) parent: u32,
    pub(crate) tid: u32,
    pub(crate) is_thread: bool,
}

impl Followed {
    pub(crate) fn is_over(&self) -> bool {
        self.has_followed && self.threads.is_empty()
    }

    pub(crate) fn has(&self, tid: u32) -> bool {
        self.threads.contains_key(&tid)
    }

    pub(crate) fn track(
        &mut self,
        at: Instant,
        seen: ThreadStatus,
        follow: Follow,
        events: &mut Vec<Event>,
    ) {
        let state = if seen.is_asleep {
            BurstState::Asleep
        } else {
            BurstState::Unknown
        };
        match self.threads.get_mut(&seen.task.id.tid) {
            Some(thread) if thread.task.id == seen.task.id => {
                thread.follow = thread.follow.max(follow);
            }
            _ => {
                self.exited(at, seen.task.id.tid, events);
                self.take_in(at, seen.task, follow, state, events);
            }
        }
    }

    pub(crate) fn untrack(&mut self, task: TaskId) {
        if self
            .threads
            .get(&task.tid)
            .is_some_and(|thread| thread.task.id == task)
        {
            self.threads.remove(&task.tid);
        }
    }

    fn take_in(
        &mut self,
        at: Instant,
        task: Task,
        follow: Follow,
        state: BurstState,
        events: &mut Vec<Event>,
    ) {
        self.has_followed = true;
        events.push(Event::Tracked { at, task });
        let thread = FollowedThread {
            task,
            follow,
            state,
        };
        self.threads.insert(task.id.tid, thread);
    }

    /// A thread was started: it is followed if its parent is, and it is one of those to follow.
    pub(crate) fn started(&mut self, at: Instant, started: ThreadStart, events: &mut Vec<Event>) {
        let Some(parent) = self.threads.get(&started.parent) else {
            return;
        };
        let (follow, mut task) = (parent.follow, parent.task);
        match follow {
            Follow::Alone => return,
            Follow::Threads if !started.is_thread => return,
            Follow::Threads | Follow::Children => {}
        }
        if !started.is_thread {
            task.pid = started.tid;
        }
        task.id = identity(started.tid, at);
        if self
            .threads
            .get(&started.tid)
            .is_some_and(|known| known.task.id == task.id)
        {
            return;
        }
        self.exited(at, started.tid, events);
        self.take_in(at, task, follow, BurstState::Asleep, events);
    }

    pub(crate) fn renamed(&mut self, at: Instant, tid: u32, comm: Name, events: &mut Vec<Event>) {
        if let Some(thread) = self.threads.get_mut(&tid)
            && thread.task.comm != comm
        {
            thread.task.comm = comm;
            let task = thread.task;
            events.push(Event::Renamed { at, task });
        }
    }

    /// The process `pid` executes another program: of its threads one is left, whichever asked for
    /// it, and has the first one's number from now on.
    pub(crate) fn executed_program(&mut self, at: Instant, pid: u32, events: &mut Vec<Event>) {
        let others: Vec<Task> = (self.threads.values().map(|thread| thread.task))
            .filter(|task| task.pid == pid && task.id.tid != pid)
            .collect();
        for mut task in others {
            let follow = self.threads.get(&task.id.tid).map(|thread| thread.follow);
            self.exited(at, task.id.tid, events);
            if let Some(follow) = follow
                && !self.has(pid)
            {
                task.id = identity(pid, at);
                self.take_in(at, task, follow, BurstState::Unknown, events);
            }
        }
    }

    pub(crate) fn exited(&mut self, at: Instant, tid: u32, events: &mut Vec<Event>) {
        if let Some(mut thread) = self.threads.remove(&tid) {
            tell(thread.state.exited(at), events);
            let task = thread.task.id;
            events.push(Event::Exited { at, task });
        }
    }

    /// A thread was woken; the task, if it is followed.
    pub(crate) fn woken(
        &mut self,
        tid: u32,
        wakeup: Wakeup,
        events: &mut Vec<Event>,
    ) -> Option<TaskId> {
        let thread = self.threads.get_mut(&tid)?;
        let task = thread.task.id;
        tell(thread.state.woken(task, wakeup), events);
        Some(task)
    }

    /// A thread was seen to write an event on `cpu`, so it runs there.
    pub(crate) fn seen_running(&mut self, at: Instant, tid: u32, cpu: Option<u32>) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.state.seen_running(at, cpu);
        }
    }

    pub(crate) fn on_cpu(&mut self, at: Instant, tid: u32, cpu: u32, events: &mut Vec<Event>) {
        let displaced = self
            .occupants
            .insert(cpu, tid)
            .filter(|&other| other != tid);
        if let Some(thread) = displaced.and_then(|tid| self.threads.get_mut(&tid)) {
            thread.state.displaced(cpu);
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            tell(thread.state.on_cpu(thread.task.id, at, Some(cpu)), events);
        }
    }

    pub(crate) fn off_cpu(&mut self, at: Instant, tid: u32, ready: bool, events: &mut Vec<Event>) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            tell(thread.state.off_cpu(thread.task.id, at, ready), events);
        }
    }

    /// The number of lost events: what goes on is unknown.
    pub(crate) fn lost(&mut self, at: Instant, count: u64, events: &mut Vec<Event>) {
        self.is_unsure = true;
        match events.last_mut() {
            Some(Event::Lost { count: before, .. }) => *before = before.saturating_add(count),
            _ => events.push(Event::Lost { at, count }),
        }
        self.occupants.clear();
        self.threads
            .values_mut()
            .for_each(|thread| thread.state.lost());
    }

    /// If events were lost, looks up which threads have come and gone meanwhile; but not all the
    /// time, because it takes long, and a program can have events lost as often as it likes. True
    /// if it did. (A new process, whose parent is not told there, is not found.)
    pub(crate) fn look_again(&mut self, now: Instant, events: &mut Vec<Event>) -> bool {
        if !self.is_unsure || now.since(self.looked) < LOOKS_EVERY {
            return false;
        }
        (self.is_unsure, self.looked) = (false, now);
        let mut gone = Vec::new();
        for (&tid, thread) in &self.threads {
            if started_ticks(tid) != Some(thread.task.id.started_ticks) {
                gone.push(tid);
            }
        }
        for tid in gone {
            self.exited(now, tid, events);
        }
        let first = |thread: &&FollowedThread| thread.task.pid == thread.task.id.tid;
        let processes: Vec<_> = (self.threads.values().filter(first))
            .map(|thread| (thread.task.pid, thread.follow))
            .collect();
        for (pid, follow) in processes {
            for seen in threads_of(pid).into_iter().filter_map(ThreadStatus::look) {
                self.track(now, seen, follow, events);
            }
        }
        true
    }
}

fn tell(burst: Option<Burst>, events: &mut Vec<Event>) {
    events.extend(burst.map(Event::Burst));
}

/// The thread that was started at `at`; it may have exited since, and its number may be another's.
fn identity(tid: u32, at: Instant) -> TaskId {
    let latest = clock::ticks_at(at);
    let started_ticks = started_ticks(tid)
        .filter(|&ticks| ticks <= latest)
        .unwrap_or(latest);
    TaskId { tid, started_ticks }
}

#[cfg(test)]
mod tests;
