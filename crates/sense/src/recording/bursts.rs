//! Builds events about tasks from the kernel's raw wakeups and switches: the bursts that the live
//! tracer would have written, and which tasks there are. How a thread's bursts are found is in
//! [`crate::burst_builder`]; here is who is meant.
//!
//! A recording that holds wakeups names by them the tasks it is about: others show up only because
//! they had a CPU before or after one of these, and are left out.

use std::collections::{HashMap, HashSet};

use onbeat_model::{Burst, Event, Instant, Task, TaskId};

use crate::burst_builder::{BurstState, Wakeup};
use crate::switch_event::{Mention, Raw, SchedEvent, WakeupKind};

#[derive(Default)]
pub(super) struct Builder {
    threads: HashMap<u32, ReplayedThread>,
    order: Vec<u32>,
    /// The thread that was last seen to get each CPU.
    occupants: HashMap<u32, u32>,
    parents: HashMap<u32, u32>,
    woken: HashSet<u32>,
    events: Vec<Event>,
    lost: u64,
    /// The times at which threads went to sleep, and those of which nothing tells when they began.
    stops: usize,
    unbegun: usize,
}

struct ReplayedThread {
    task: Task,
    state: BurstState,
    switched: bool,
}

pub(super) struct Built {
    /// Every task, in the order of their first mention, with its last name.
    pub(super) tasks: Vec<Task>,
    pub(super) parents: HashMap<u32, u32>,
    pub(super) events: Vec<Event>,
    pub(super) lost: u64,
    /// Of many bursts only the end is there.
    pub(super) lacks_begins: bool,
}

impl Builder {
    pub(super) fn hear(&mut self, raw: Raw) {
        let at = raw.at;
        if let Some(thread) = self.threads.get_mut(&raw.current) {
            thread.state.seen_running(at, raw.cpu);
        }
        match raw.what {
            SchedEvent::Other => {}
            SchedEvent::Wakeup { kind, task, waker } => self.wakeup(raw, kind, task, waker),
            SchedEvent::Switch { from, ready, to } => self.switch(raw, from, ready, to),
            SchedEvent::Fork { parent, child } => {
                self.parents.insert(child.tid, parent);
                if let Some(thread) = self.threads.get_mut(&child.tid) {
                    thread.state = BurstState::Gone;
                }
                self.mentioned(at, child);
                self.reborn(at, child.tid, BurstState::Asleep);
            }
            SchedEvent::Renamed { task } => {
                self.mentioned(at, task);
            }
            SchedEvent::Exit { tid } => self.exited(at, tid),
            SchedEvent::Lost { count } => {
                self.lost = self.lost.saturating_add(count);
                self.events.push(Event::Lost { at, count });
                self.occupants.clear();
                for thread in self.threads.values_mut() {
                    thread.state.lost();
                }
            }
        }
    }

    /// The end of the recording. `process_of` tells which process a thread belongs to, where the
    /// recording does.
    pub(super) fn finish(mut self, process_of: &HashMap<u32, u32>) -> Built {
        // In the order of mention, so that the same recording always gives the same events.
        for thread in self.order.iter().filter_map(|tid| self.threads.get(tid)) {
            if let (BurstState::Woken { burst, .. }, false) = (thread.state, thread.switched) {
                self.events.push(Event::Burst(burst));
            }
        }
        let woken = &self.woken;
        let meant = |tid: u32| woken.is_empty() || woken.contains(&tid);
        let placed = |mut task: Task| {
            task.pid = process_of.get(&task.id.tid).copied().unwrap_or(task.pid);
            task
        };
        self.events
            .retain(|event| event.task().is_none_or(|task| meant(task.tid)));
        for event in &mut self.events {
            if let Event::Tracked { task, .. } | Event::Renamed { task, .. } = event {
                *task = placed(*task);
            }
        }
        let tasks = (self.order.iter().copied())
            .filter(|&tid| meant(tid))
            .filter_map(|tid| Some(placed(self.threads.get(&tid)?.task)))
            .collect();
        Built {
            tasks,
            parents: self.parents,
            events: self.events,
            lost: self.lost,
            // The first of each thread began before the recording.
            lacks_begins: self.unbegun.saturating_sub(self.order.len()) * 4 > self.stops,
        }
    }

    /// The thread, announced or renamed if need be; none for the idle task.
    fn mentioned(&mut self, at: Instant, mention: Mention) -> Option<&mut ReplayedThread> {
        if mention.tid == 0 {
            return None;
        }
        let task = Task {
            id: TaskId::recorded(mention.tid),
            pid: mention.tid,
            comm: mention.comm,
        };
        let (order, events) = (&mut self.order, &mut self.events);
        let thread = self.threads.entry(mention.tid).or_insert_with(|| {
            order.push(mention.tid);
            events.push(Event::Tracked { at, task });
            ReplayedThread {
                task,
                state: BurstState::Unknown,
                switched: false,
            }
        });
        if thread.task.comm != mention.comm {
            thread.task = task;
            if !matches!(thread.state, BurstState::Gone) {
                events.push(Event::Renamed { at, task });
            }
        }
        Some(thread)
    }

    /// The number of a thread that is gone was given to a new one, now in `state`.
    fn reborn(&mut self, at: Instant, tid: u32, state: BurstState) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            if matches!(thread.state, BurstState::Gone) {
                let task = thread.task;
                self.events.push(Event::Tracked { at, task });
            }
            thread.state = state;
        }
    }

    fn tell(&mut self, burst: Option<Burst>) {
        self.events.extend(burst.map(Event::Burst));
    }

    fn wakeup(&mut self, raw: Raw, kind: WakeupKind, mention: Mention, waker: u32) {
        let Some(thread) = self.mentioned(raw.at, mention) else {
            return;
        };
        if matches!(thread.state, BurstState::Gone) {
            if kind != WakeupKind::New {
                return;
            }
            self.reborn(raw.at, mention.tid, BurstState::Asleep);
        }
        self.woken.insert(mention.tid);
        let wakeup = Wakeup {
            at: raw.at,
            kind,
            waker,
            cpu: raw.cpu,
            current: raw.current,
            switches: false,
        };
        let thread = self.threads.get_mut(&mention.tid);
        let ended = thread.and_then(|thread| thread.state.woken(thread.task.id, wakeup));
        self.tell(ended);
    }

    fn switch(&mut self, raw: Raw, from: Mention, ready: bool, to: Mention) {
        if let Some(cpu) = raw.cpu {
            let displaced = self.occupants.insert(cpu, to.tid);
            let displaced = displaced.filter(|&tid| tid != from.tid);
            if let Some(thread) = displaced.and_then(|tid| self.threads.get_mut(&tid)) {
                thread.state.displaced(cpu);
            }
        }
        if let Some(thread) = self.mentioned(raw.at, from) {
            thread.switched = true;
            thread.state.seen_running(raw.at, raw.cpu);
            let ended = thread.state.off_cpu(thread.task.id, raw.at, ready);
            self.stops += usize::from(!ready);
            self.unbegun += usize::from(!ready && ended.is_none());
            self.tell(ended);
        }
        if let Some(thread) = self.mentioned(raw.at, to) {
            thread.switched = true;
            let ended = thread.state.on_cpu(thread.task.id, raw.at, raw.cpu);
            self.tell(ended);
        }
    }

    fn exited(&mut self, at: Instant, tid: u32) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        if matches!(thread.state, BurstState::Gone) {
            return;
        }
        let task = thread.task.id;
        let ended = thread.state.exited(at);
        self.tell(ended);
        self.events.push(Event::Exited { at, task });
    }
}
