//! Builds bursts from the kernel's raw wakeups and switches, as the live tracer does in the kernel.
//!
//! A thread's burst runs from its wakeup to the switch at which it no longer wants the CPU. What a
//! recording does not hold is not made up:
//! - Without switches (only wakeups were recorded) a burst is its wakeup: no length, no execution.
//! - A switch to a sleeping thread without a wakeup before it starts a burst at the switch.
//! - Some switches are hidden from tracing. A thread that is woken while it waits for its first CPU
//!   must have run and slept unseen: that burst is told with its wakeup alone.
//! - A burst whose beginning lies before the recording, or whose middle was lost, is left out.

use std::collections::{HashMap, HashSet};

use onbeat_model::{Burst, Event, Instant, Span, Task, TaskId};

use super::raw::{Kind, Mention, Raw, What};

/// Turns raw events, in the order of their times, into events about tasks.
#[derive(Default)]
pub(super) struct Builder {
    threads: HashMap<u32, Thread>,
    order: Vec<u32>,
    parents: HashMap<u32, u32>,
    woken: HashSet<u32>,
    events: Vec<Event>,
    lost: u64,
}

/// What was built.
pub(super) struct Built {
    /// Every task, in the order of their first mention, with its last name.
    pub(super) tasks: Vec<Task>,
    /// Which thread started which: child to parent.
    pub(super) parents: HashMap<u32, u32>,
    /// The events, not yet sorted.
    pub(super) events: Vec<Event>,
    /// How many events the recorder lost.
    pub(super) lost: u64,
}

struct Thread {
    task: Task,
    state: State,
    switched: bool,
}

#[derive(Clone, Copy)]
enum State {
    /// Nothing is known yet, or events were lost.
    Unknown,
    /// Asleep.
    Blocked,
    /// Woken, and not yet seen to run.
    Woken { burst: Burst, by: Kind },
    /// Waiting for a CPU in the middle of a burst.
    Preempted { burst: Burst, whole: bool },
    /// On a CPU.
    Running {
        burst: Burst,
        whole: bool,
        since: Instant,
        woken_again: Option<(Instant, u32)>,
    },
    /// Exited.
    Gone,
}

fn begun(task: TaskId, woke: Instant, first_ran: Instant, waker: u32) -> Burst {
    Burst {
        task,
        woke,
        first_ran,
        blocked: first_ran,
        executed: Span::ZERO,
        preempted: 0,
        waker,
        exhausted: false,
    }
}

impl Builder {
    /// Takes in the next raw event.
    pub(super) fn hear(&mut self, raw: Raw) {
        let at = raw.at;
        match raw.what {
            What::Wakeup { kind, task, waker } => self.wakeup(at, kind, task, waker),
            What::Switch { from, ready, to } => {
                self.switched_out(at, from, ready);
                self.switched_in(at, to);
            }
            What::Fork { parent, child } => {
                self.forget(child.tid);
                self.parents.insert(child.tid, parent);
                if let Some(thread) = self.mentioned(at, child) {
                    thread.state = State::Blocked;
                }
            }
            What::Renamed { task } => {
                self.mentioned(at, task);
            }
            What::Exit { tid } => self.exited(at, tid),
            What::Lost { count } => {
                self.lost = self.lost.saturating_add(count);
                self.events.push(Event::Lost { at, count });
                for thread in self.threads.values_mut() {
                    if !matches!(thread.state, State::Gone) {
                        thread.state = State::Unknown;
                    }
                }
            }
        }
    }

    /// The end of the recording. `process_of` tells which process a thread belongs to, where the
    /// recording does.
    pub(super) fn finish(mut self, process_of: &HashMap<u32, u32>) -> Built {
        for thread in self.threads.values() {
            if let (State::Woken { burst, .. }, false) = (thread.state, thread.switched) {
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
        }
    }

    /// The thread's number was given to a new one.
    fn forget(&mut self, tid: u32) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.state = State::Gone;
        }
    }

    /// The thread, announced or renamed if need be; none for the idle task.
    fn mentioned(&mut self, at: Instant, mention: Mention) -> Option<&mut Thread> {
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
            Thread {
                task,
                state: State::Unknown,
                switched: false,
            }
        });
        if thread.task.comm != mention.comm {
            thread.task = task;
            if !matches!(thread.state, State::Gone) {
                events.push(Event::Renamed { at, task });
            }
        }
        Some(thread)
    }

    fn wakeup(&mut self, at: Instant, kind: Kind, mention: Mention, waker: u32) {
        let Some(thread) = self.mentioned(at, mention) else {
            return;
        };
        let task = thread.task;
        let woken = State::Woken {
            burst: begun(task.id, at, at, waker),
            by: kind,
        };
        let mut told = None;
        match &mut thread.state {
            State::Unknown | State::Blocked => thread.state = woken,
            State::Woken { burst, by } => {
                if *by == Kind::Waking && kind != Kind::Waking {
                    *by = kind;
                } else {
                    told = Some(Event::Burst(*burst));
                    thread.state = woken;
                }
            }
            State::Running { woken_again, .. } => *woken_again = Some((at, waker)),
            State::Preempted { .. } => {}
            State::Gone if kind == Kind::New => {
                told = Some(Event::Tracked { at, task });
                thread.state = woken;
            }
            State::Gone => return,
        }
        self.woken.insert(mention.tid);
        self.events.extend(told);
    }

    fn switched_in(&mut self, at: Instant, mention: Mention) {
        let Some(thread) = self.mentioned(at, mention) else {
            return;
        };
        let id = thread.task.id;
        let mut told = None;
        let (burst, whole) = match thread.state {
            State::Unknown => (begun(id, at, at, 0), false),
            State::Blocked => (begun(id, at, at, 0), true),
            State::Woken { mut burst, .. } => {
                burst.first_ran = at;
                (burst, true)
            }
            State::Preempted { burst, whole } => (burst, whole),
            State::Running {
                mut burst,
                whole,
                since,
                woken_again: Some((woke, waker)),
            } => {
                burst.blocked = since;
                told = whole.then_some(Event::Burst(burst));
                (begun(id, woke, at, waker), true)
            }
            State::Running { burst, whole, .. } => (burst, whole),
            State::Gone => return,
        };
        thread.switched = true;
        thread.state = State::Running {
            burst,
            whole,
            since: at,
            woken_again: None,
        };
        self.events.extend(told);
    }

    fn switched_out(&mut self, at: Instant, mention: Mention, ready: bool) {
        let Some(thread) = self.mentioned(at, mention) else {
            return;
        };
        thread.switched = true;
        let (mut burst, whole) = match thread.state {
            State::Unknown | State::Blocked => (begun(thread.task.id, at, at, 0), false),
            State::Woken { mut burst, .. } => {
                burst.first_ran = at;
                (burst, true)
            }
            State::Preempted { burst, whole } => (burst, whole),
            State::Running {
                mut burst,
                whole,
                since,
                ..
            } => {
                burst.executed += at.since(since);
                (burst, whole)
            }
            State::Gone => return,
        };
        if ready {
            burst.preempted = burst.preempted.saturating_add(1);
            thread.state = State::Preempted { burst, whole };
        } else {
            burst.blocked = at;
            thread.state = State::Blocked;
            self.events.extend(whole.then_some(Event::Burst(burst)));
        }
    }

    fn exited(&mut self, at: Instant, tid: u32) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        if let State::Running {
            mut burst,
            whole: true,
            since,
            ..
        } = thread.state
        {
            burst.executed += at.since(since);
            burst.blocked = at;
            self.events.push(Event::Burst(burst));
        }
        if !matches!(thread.state, State::Gone) {
            thread.state = State::Gone;
            self.events.push(Event::Exited {
                at,
                task: thread.task.id,
            });
        }
    }
}
