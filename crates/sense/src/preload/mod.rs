//! The tracer that stops no thread and needs no privilege: a library that is loaded into a program
//! before all others, and tells what its threads do.
//!
//! LFS++, section 6.2: "it is also possible to exploit dynamic linking to intercept the calls".
//! `listener.c` is the library, `ring` the way from there to here.
//!
//! Not heard are programs that are linked statically or raise their privileges (their linker
//! ignores what is preloaded), programs that change their user, and calls that libc makes by itself
//! (a `fread` that waits). A program tells only of itself and of what descends from it: of other
//! threads it is not believed.

mod error;
mod library;
mod memory;
mod ring;

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use onbeat_kernel::clock;
use onbeat_kernel::proc::{open_process, started_ticks};
use onbeat_kernel::wait::{PollFd, PollFlags, poll};
use onbeat_model::{Burst, Event, Flow, Follow, Instant, Sensor, Span, Task, TaskId};

pub use error::PreloadError;
pub use ring::{PreloadRecord, Reader};

use crate::identity;
use crate::preparation::Preparation;
use crate::workload::{Workload, of_this_machine};
use library::Library;
use memory::Memory;

/// Between two looks at who is still there. A program that ends by itself is told at once.
const LOOKS_EVERY: Span = Span::from_secs(1);
/// The most threads that are remembered: a program can make up any number of them. A tenth of that
/// is a large program; the rest is room for one that makes numbers up.
const MOST_THREADS: usize = 8192;
/// How far up a program's ancestors are looked at. A shell in a terminal in a session is ten deep.
const MOST_ANCESTORS: usize = 64;

/// Hears programs that this process starts, with what [`preparation`](Self::preparation) says in
/// their environment.
#[derive(Debug)]
pub struct PreloadSensor {
    memory: Memory,
    library: Library,
    reader: Reader,
    roots: Vec<Root>,
    /// The threads that were heard; none of those that are not believed.
    threads: HashMap<u32, Option<PreloadThread>>,
    announced: Vec<Event>,
    looked: Instant,
    workload: Workload,
}

#[derive(Debug)]
struct Root {
    pid: u32,
    follow: Follow,
    process: OwnedFd,
    ended: bool,
}

#[derive(Debug)]
struct PreloadThread {
    task: Task,
    ignored: bool,
    heard: Instant,
}

impl PreloadSensor {
    pub fn new() -> Result<Self, PreloadError> {
        Ok(Self {
            memory: Memory::new().map_err(|source| PreloadError::NoMemory { source })?,
            library: Library::new()?,
            reader: Reader::default(),
            roots: Vec::new(),
            threads: HashMap::new(),
            announced: Vec::new(),
            looked: clock::now(),
            workload: Workload::default(),
        })
    }

    pub fn preparation(&self) -> Preparation {
        let mut preload = std::ffi::OsString::from(self.library.path());
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        Preparation {
            environment: vec![
                ("LD_PRELOAD".into(), preload),
                ("ONBEAT_RING".into(), self.memory.path().into()),
            ],
            ..Preparation::default()
        }
    }

    fn collect(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.announced);
        let mut records = Vec::new();
        let mut lost = self.reader.read(self.memory.words(), &mut records);
        // Not before: what was written while reading went on would lie in the future.
        let now = clock::now();
        for record in records {
            let Some(burst) = burst_of(&record, now) else {
                lost += 1;
                continue;
            };
            self.meet(&record, burst.woke, events);
            let Some(Some(thread)) = self.threads.get_mut(&record.tid) else {
                continue;
            };
            if thread.ignored {
                continue;
            }
            if burst.woke < thread.heard {
                lost += 1;
                continue;
            }
            thread.heard = burst.blocked;
            if thread.task.comm != record.comm {
                thread.task.comm = record.comm;
                let (at, task) = (burst.blocked, thread.task);
                events.push(Event::Renamed { at, task });
            }
            let task = thread.task.id;
            events.push(Event::Burst(Burst { task, ..burst }));
        }
        if lost > 0 {
            let (at, count) = (now, lost);
            events.push(Event::Lost { at, count });
        }
    }

    /// Takes in the thread of `record`, if it is new.
    fn meet(&mut self, record: &PreloadRecord, at: Instant, events: &mut Vec<Event>) {
        if self.threads.contains_key(&record.tid) {
            return;
        }
        if self.threads.len() >= MOST_THREADS {
            self.threads.retain(|_, thread| thread.is_some());
        }
        let task = self
            .believed(record)
            .filter(|_| self.threads.len() < MOST_THREADS);
        events.extend(task.map(|task| Event::Tracked { at, task }));
        let thread = task.map(|task| PreloadThread {
            task,
            ignored: false,
            heard: Instant::ZERO,
        });
        self.threads.insert(record.tid, thread);
    }

    /// The thread that `record` is about, if it is one of the programs'.
    fn believed(&self, record: &PreloadRecord) -> Option<Task> {
        let Some(task) = identity::task(record.tid) else {
            // The process has ended since, and its records concern no living task: without its
            // start, no living thread is taken for it.
            let known = self.threads.values().flatten();
            let mut processes = known.map(|thread| thread.task.pid);
            let is_followed = processes.any(|pid| pid == record.pid)
                || (self.roots.iter()).any(|root| root.follow == Follow::Children);
            return is_followed.then_some(Task {
                id: TaskId::recorded(record.tid),
                pid: record.pid,
                comm: record.comm,
            });
        };
        let is_followed = self.roots.iter().any(|root| match root.follow {
            Follow::Alone => task.id.tid == root.pid,
            Follow::Threads => task.pid == root.pid,
            Follow::Children => descends(task.pid, root.pid),
        });
        is_followed.then_some(task)
    }

    /// Tells who is gone.
    fn look(&mut self, events: &mut Vec<Event>) {
        let now = clock::now();
        self.looked = now;
        let workload = &mut self.workload;
        self.threads.retain(|&tid, thread| {
            let Some(thread) = thread else {
                return started_ticks(tid).is_some();
            };
            let task = thread.task.id;
            let alive = started_ticks(tid) == Some(task.started_ticks);
            if !alive {
                workload.forget(task);
                if !thread.ignored {
                    let at = now.max(thread.heard);
                    events.push(Event::Exited { at, task });
                }
            }
            alive
        });
    }

    /// Waits for `timeout`, or until a program ends; true if one did.
    fn wait(&mut self, timeout: Span) -> bool {
        let running = |root: &&mut Root| !root.ended;
        let mut roots: Vec<&mut Root> = self.roots.iter_mut().filter(running).collect();
        let mut polls: Vec<PollFd<'_>> = (roots.iter())
            .map(|root| PollFd::new(&root.process, PollFlags::IN))
            .collect();
        let _ = poll(&mut polls, Some(timeout));
        let ended: Vec<bool> = polls
            .iter()
            .map(|poll| !poll.revents().is_empty())
            .collect();
        let mut any = false;
        for (root, ended) in roots.iter_mut().zip(ended) {
            root.ended = ended;
            any |= root.ended;
        }
        any
    }
}

impl Sensor for PreloadSensor {
    type Error = PreloadError;

    fn track(&mut self, tid: u32, follow: Follow) -> Result<(), PreloadError> {
        if identity::parent(tid) != Some(std::process::id()) {
            return Err(PreloadError::NotStartedHere { tid });
        }
        let task = identity::task(tid).ok_or(PreloadError::Gone { tid })?;
        let process = open_process(tid).map_err(|_| PreloadError::Gone { tid })?;
        self.roots.push(Root {
            pid: tid,
            follow,
            process,
            ended: false,
        });
        let at = self.now();
        self.announced.push(Event::Tracked { at, task });
        let thread = PreloadThread {
            task,
            ignored: false,
            heard: Instant::ZERO,
        };
        self.threads.insert(tid, Some(thread));
        Ok(())
    }

    fn untrack(&mut self, tasks: &[TaskId]) -> Result<(), PreloadError> {
        for &task in tasks {
            self.workload.forget(task);
            if let Some(Some(thread)) = self.threads.get_mut(&task.tid) {
                thread.ignored |= thread.task.id == task;
            }
        }
        Ok(())
    }

    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, PreloadError> {
        let ended = self.wait(timeout);
        self.collect(events);
        if ended || self.now().since(self.looked) >= LOOKS_EVERY {
            self.look(events);
        }
        let over = !self.roots.is_empty()
            && self.roots.iter().all(|root| root.ended)
            && self.threads.values().flatten().next().is_none();
        Ok(if over { Flow::Ended } else { Flow::Open })
    }

    of_this_machine!();
}

/// Whether the process `pid` is `ancestor`, or was started by it or what it started.
fn descends(pid: u32, ancestor: u32) -> bool {
    std::iter::successors(Some(pid), |&pid| identity::parent(pid))
        .take(MOST_ANCESTORS)
        .any(|pid| pid == ancestor)
}

/// The burst that a record tells of, if its times can be: it has no owner yet.
fn burst_of(record: &PreloadRecord, now: Instant) -> Option<Burst> {
    let woke = Instant::from_ns(record.woke_ns);
    let blocked = Instant::from_ns(record.blocked_ns);
    (woke <= blocked && blocked <= now).then(|| Burst {
        blocked,
        executed: Span::from_ns(record.executed_ns).min(blocked.since(woke)),
        preempted: record.preempted,
        first_ran: (woke + Span::from_us(record.waited_us.into())).min(blocked),
        ..Burst::pulse(TaskId::recorded(record.tid), woke)
    })
}

/// Whether programs can be heard like this here, by this user. Leaves nothing behind.
pub(crate) fn probe() -> Result<(), PreloadError> {
    Memory::new().map_err(|source| PreloadError::NoMemory { source })?;
    Library::probe()
}

#[cfg(test)]
mod tests;
