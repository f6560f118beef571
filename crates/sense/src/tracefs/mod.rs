//! The tracer for kernels without BPF: hears threads through the scheduler's events in tracefs.
//!
//! Root writes the threads' numbers to a trace buffer of our own (`instances/`), whose filter the
//! kernel extends to what they start, and reads its text from time to time. The events become
//! bursts outside the kernel, as with recordings. It costs more than BPF (an event for each wakeup
//! and switch, written as text when it is read) and is exact to a microsecond; budgets that run
//! out, and what programs say of their work, are not heard.

mod error;
mod instance;
mod place;
mod text;

use std::fs::File;
use std::io::{self, Read};

use onbeat_model::{Event, Instant, Span};

use crate::bpf::BpfError;
use crate::burst_builder::Wakeup;
use crate::switch_event::{Raw, SchedEvent};
use crate::switch_sensor::{Following, Source};
use crate::task_set::{Followed, ThreadStart};
pub use error::TracefsError;
use instance::Instance;
pub use instance::remove_leftovers;
use onbeat_kernel::{clock, proc, wait};
use text::{Text, TracefsEvent};

/// How long events wait in the kernel. It has room for some 10,000 events of each CPU, 100,000 in a
/// second.
const PACE: Span = Span::from_ms(100);

/// Hears threads of the running kernel. Tracing ends when it is dropped.
pub type TracefsSensor = Following<Trace>;

/// The kernel's text on them.
#[derive(Debug)]
pub struct Trace {
    /// Before the buffer that it reads, which could not be removed otherwise.
    pipe: File,
    instance: Instance,
    text: Text,
    raw_wakeups: bool,
    /// The events that cannot be told yet, as an earlier event of another CPU may be to come.
    pending: Vec<(Instant, TracefsEvent)>,
    last: Instant,
}

impl TracefsSensor {
    /// Makes a trace buffer. Nothing is tracked yet. With `raw_wakeups` each wakeup is told, too.
    pub fn new(raw_wakeups: bool) -> Result<Self, TracefsError> {
        if !proc::has_machines_numbers() {
            return Err(BpfError::OtherNumbers.into());
        }
        let instance = Instance::make()?;
        Ok(Self::by(Trace {
            pipe: instance.pipe()?,
            instance,
            text: Text::default(),
            raw_wakeups,
            pending: Vec::new(),
            last: Instant::ZERO,
        }))
    }
}

impl Trace {
    fn read_up_to(&mut self, horizon: Instant) -> Result<(), TracefsError> {
        let mut piece = [0; 1 << 14];
        loop {
            match self.pipe.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(length) => {
                    self.take(piece.get(..length).unwrap_or(&[]));
                    // The kernel gives the events of all CPUs in their order: after a later one, no
                    // earlier one is left. Programs may cause them faster than this reads.
                    if self.last > horizon {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.kernel("read the trace", source)),
            }
        }
    }

    fn kernel(&self, what: &'static str, source: io::Error) -> TracefsError {
        TracefsError::Kernel {
            what,
            path: self.instance.path().to_owned(),
            source,
        }
    }

    fn take(&mut self, piece: &[u8]) {
        let mut said = Vec::new();
        self.text.take(piece, &mut said);
        for said in said {
            self.last = match said {
                TracefsEvent::Raw(raw) => raw.at,
                TracefsEvent::Started { at, .. } | TracefsEvent::Executed { at, .. } => at,
                TracefsEvent::Lost(_) => self.last,
            };
            self.pending.push((self.last, said));
        }
    }

    fn hear(
        &self,
        at: Instant,
        said: TracefsEvent,
        followed: &mut Followed,
        events: &mut Vec<Event>,
    ) {
        match said {
            TracefsEvent::Lost(count) => followed.lost(at, count, events),
            TracefsEvent::Started {
                parent,
                tid,
                is_thread,
                ..
            } => {
                let started = ThreadStart {
                    parent,
                    tid,
                    is_thread,
                };
                followed.started(at, started, events);
            }
            TracefsEvent::Executed { pid, comm, .. } => {
                followed.executed_program(at, pid, events);
                followed.renamed(at, pid, comm, events);
            }
            TracefsEvent::Raw(raw) => self.hear_raw(raw, followed, events),
        }
    }

    fn hear_raw(&self, raw: Raw, followed: &mut Followed, events: &mut Vec<Event>) {
        let at = raw.at;
        followed.seen_running(at, raw.current, raw.cpu);
        match raw.what {
            SchedEvent::Wakeup { kind, task, waker } => {
                let wakeup = Wakeup {
                    at,
                    kind,
                    waker,
                    cpu: raw.cpu,
                    current: raw.current,
                    switches: true,
                };
                if let Some(task) = followed.woken(task.tid, wakeup, events)
                    && self.raw_wakeups
                {
                    events.push(Event::Wakeup { at, task, waker });
                }
            }
            SchedEvent::Switch { from, ready, to } => {
                followed.off_cpu(at, from.tid, ready, events);
                if let Some(cpu) = raw.cpu {
                    followed.on_cpu(at, to.tid, cpu, events);
                }
            }
            SchedEvent::Renamed { task } => followed.renamed(at, task.tid, task.comm, events),
            SchedEvent::Exit { tid } => followed.exited(at, tid, events),
            SchedEvent::Fork { .. } | SchedEvent::Other | SchedEvent::Lost { .. } => {}
        }
    }
}

impl Source for Trace {
    type Error = TracefsError;

    fn add(&mut self, tid: u32) -> Result<bool, TracefsError> {
        self.instance.add(tid)?;
        Ok(true)
    }

    /// Tells what cannot be preceded by anything any more.
    fn collect(
        &mut self,
        followed: &mut Followed,
        events: &mut Vec<Event>,
    ) -> Result<(), TracefsError> {
        let horizon = clock::now();
        self.read_up_to(horizon)?;
        self.pending.sort_by_key(|(at, _)| *at);
        let ready = self.pending.partition_point(|(at, _)| *at <= horizon);
        for (at, said) in self.pending.drain(..ready).collect::<Vec<_>>() {
            self.hear(at, said, followed, events);
        }
        followed.look_again(horizon, events);
        Ok(())
    }

    fn wait(&mut self, longest: Span) -> Result<bool, TracefsError> {
        wait::readable(&[], Some(longest.min(PACE)))
            .map_err(|source| self.kernel("wait for the trace", source))
    }

    fn nobody(tid: u32) -> TracefsError {
        TracefsError::NoSuchTask { tid }
    }
}
