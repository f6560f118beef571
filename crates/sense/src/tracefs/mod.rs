//! The tracer for kernels without BPF: hears threads through the scheduler's events in tracefs.
//!
//! Root writes the threads' numbers to a trace buffer of our own (`instances/`), whose filter the kernel extends to
//! what they start, and reads its text from time to time. What the events say becomes bursts outside the kernel,
//! as with recordings. It costs more than BPF (an event for each wakeup and switch, written as text when it is
//! read) and is exact to a microsecond; budgets that run out, and what programs say of their work, are not heard.

mod error;
mod instance;
mod text;

use std::fs::File;
use std::io::{self, Read};

use onbeat_model::{Event, Feature, Flow, Follow, Instant, Sensor, Span, Support, TaskId};

use crate::clock;
use crate::course::Wakeup;
use crate::followed::{Followed, Seen, Started, threads_of};
use crate::raw::{Raw, What};
use crate::wait;
use crate::workload::Workload;
pub use error::Error;
use instance::Instance;
pub use instance::remove_leftovers;
use text::{Said, Text};

/// How long events wait in the kernel at most, so that the buffer does not run over.
const PACE: Span = Span::from_ms(100);

/// Hears threads of the running kernel. Tracing ends when it is dropped.
#[derive(Debug)]
pub struct TracefsSensor {
    /// Before the buffer that it reads, which could not be removed otherwise.
    pipe: File,
    instance: Instance,
    text: Text,
    followed: Followed,
    raw_wakeups: bool,
    /// What was read and cannot be told yet, as an earlier event of another CPU may be to come.
    pending: Vec<(Instant, Said)>,
    /// The time of the last event that was read.
    last: Instant,
    /// What came of tracking.
    outbox: Vec<Event>,
    workload: Workload,
}

impl TracefsSensor {
    /// Makes a trace buffer. Nothing is tracked yet. With `raw_wakeups` each wakeup is told, too.
    ///
    /// # Errors
    /// Without privilege, or where tracefs is missing.
    pub fn new(raw_wakeups: bool) -> Result<Self, Error> {
        let instance = Instance::make()?;
        Ok(Self {
            pipe: instance.pipe()?,
            instance,
            text: Text::default(),
            followed: Followed::default(),
            raw_wakeups,
            pending: Vec::new(),
            last: Instant::ZERO,
            outbox: Vec::new(),
            workload: Workload::default(),
        })
    }

    /// Reads the buffer, and tells what cannot be preceded by anything any more.
    fn collect(&mut self, events: &mut Vec<Event>) -> Result<(), Error> {
        let horizon = clock::now();
        let mut piece = [0; 1 << 14];
        loop {
            match self.pipe.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => {
                    self.take(piece.get(..length).unwrap_or(&[]));
                    // The kernel gives the events of all CPUs in their order: after a later one, no earlier one is
                    // left. Programs may cause them faster than this reads.
                    if self.last > horizon {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(Error::Kernel {
                        what: "read the trace",
                        path: self.instance.path().to_owned(),
                        source,
                    });
                }
            }
        }
        self.pending.sort_by_key(|(at, _)| *at);
        let ready = self.pending.partition_point(|(at, _)| *at <= horizon);
        for (at, said) in self.pending.drain(..ready).collect::<Vec<_>>() {
            self.hear(at, said, events);
        }
        Ok(())
    }

    /// Adds what a piece of the trace says to what is to be told.
    fn take(&mut self, piece: &[u8]) {
        let mut said = Vec::new();
        self.text.take(piece, &mut said);
        for said in said {
            self.last = match said {
                Said::Raw(raw) => raw.at,
                Said::Started { at, .. } | Said::Executed { at, .. } => at,
                Said::Lost(_) => self.last,
            };
            self.pending.push((self.last, said));
        }
    }

    fn hear(&mut self, at: Instant, said: Said, events: &mut Vec<Event>) {
        let followed = &mut self.followed;
        match said {
            Said::Lost(count) => followed.lost(at, count, events),
            Said::Started {
                parent,
                tid,
                is_thread,
                ..
            } => {
                let started = Started {
                    parent,
                    tid,
                    is_thread,
                };
                followed.started(at, started, events);
            }
            Said::Executed { pid, comm, .. } => {
                followed.executed_program(at, pid, events);
                followed.renamed(at, pid, comm, events);
            }
            Said::Raw(raw) => self.hear_raw(raw, events),
        }
    }

    fn hear_raw(&mut self, raw: Raw, events: &mut Vec<Event>) {
        let (at, followed) = (raw.at, &mut self.followed);
        followed.seen_running(at, raw.current, raw.cpu);
        match raw.what {
            What::Wakeup { kind, task, waker } => {
                let wakeup = Wakeup {
                    at,
                    kind,
                    waker,
                    cpu: raw.cpu,
                    current: raw.current,
                };
                if let Some(task) = followed.woken(task.tid, wakeup, events)
                    && self.raw_wakeups
                {
                    events.push(Event::Wakeup { at, task, waker });
                }
            }
            What::Switch { from, ready, to } => {
                followed.off_cpu(at, from.tid, ready, events);
                if let Some(cpu) = raw.cpu {
                    followed.on_cpu(at, to.tid, cpu, events);
                }
            }
            What::Renamed { task } => followed.renamed(at, task.tid, task.comm, events),
            What::Exit { tid } => followed.exited(at, tid, events),
            What::Fork { .. } | What::Other | What::Lost { .. } => {}
        }
    }
}

impl Sensor for TracefsSensor {
    type Error = Error;

    fn track(&mut self, tid: u32, follow: Follow) -> Result<(), Error> {
        // What was written of a thread before it is tracked is not told.
        let mut before = Vec::new();
        self.collect(&mut before)?;
        self.outbox.append(&mut before);
        let mut known = Vec::new();
        loop {
            let mut found = threads_of(tid);
            found.retain(|&thread| {
                !known.contains(&thread) && (follow != Follow::Alone || thread == tid)
            });
            if found.is_empty() {
                break;
            }
            for thread in found {
                known.push(thread);
                self.instance.add(thread)?;
                if let Some(seen) = Seen::look(thread) {
                    let now = self.now();
                    self.followed.track(now, seen, follow, &mut self.outbox);
                }
            }
        }
        if known.iter().any(|&thread| self.followed.has(thread)) {
            Ok(())
        } else {
            Err(Error::NoSuchTask { tid })
        }
    }

    fn untrack(&mut self, task: TaskId) -> Result<(), Error> {
        self.followed.untrack(task);
        self.workload.forget(task);
        self.outbox.retain(|event| event.task() != Some(task));
        Ok(())
    }

    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, Error> {
        let until = self.now() + timeout;
        let heard = events.len();
        events.append(&mut self.outbox);
        loop {
            self.collect(events)?;
            let left = until.since(self.now());
            if self.followed.is_over() || left.is_zero() {
                break;
            }
            let source = wait::readable(&[], left.min(PACE));
            let goes_on = source.map_err(|source| Error::Kernel {
                what: "wait for the trace",
                path: self.instance.path().to_owned(),
                source,
            })?;
            if !goes_on {
                break;
            }
        }
        for event in events.get(heard..).unwrap_or_default() {
            if let Event::Exited { task, .. } = event {
                self.workload.forget(*task);
            }
        }
        Ok(if self.followed.is_over() {
            Flow::Ended
        } else {
            Flow::Open
        })
    }

    fn now(&self) -> Instant {
        clock::now()
    }

    fn executed(&mut self, task: TaskId) -> Option<Span> {
        self.workload.executed(task)
    }

    fn idle(&mut self) -> Option<Vec<Span>> {
        crate::idle::idle()
    }
}

/// Makes a trace buffer for a moment, and says what may be heard through it.
#[must_use]
pub fn probe() -> Feature {
    const NAME: &str = "tracer tracefs";
    match TracefsSensor::new(false) {
        Ok(_) => Feature::new(
            NAME,
            Support::Partial,
            "wakeups and switches are heard to a microsecond; exhausted budgets and marks are not",
            "",
        ),
        Err(error) => Feature::new(NAME, Support::None, &error.to_string(), ""),
    }
}
