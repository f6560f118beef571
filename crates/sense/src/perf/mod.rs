//! The tracer without privilege: hears one's own threads through perf's records of context switches.
//!
//! An event that counts nothing is opened for each thread and CPU (`perf_event_open(2)`, `context_switch`); what
//! the thread starts inherits it. The kernel writes a record whenever one of them gets a CPU or leaves it, into a
//! ring for each CPU, and says of one that leaves whether it still wants to run. It does not say when one was
//! woken: a burst begins when the thread first runs, so that the time it waited before is not seen.

mod error;
mod open;
mod record;
mod ring;

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use onbeat_model::{Event, Feature, Flow, Follow, Instant, Sensor, Span, Support, TaskId};

use crate::clock;
use crate::followed::{Followed, Seen, Started, threads_of};
use crate::wait;
use crate::workload::Workload;
pub use error::Error;
use open::Tells;
pub use record::{Record, What, records};
use ring::Ring;

/// The size of the largest ring, in pages: half of what a user may have by default, so that two tracers find room.
const MOST_PAGES: usize = 64;

/// Hears threads of one's own. Tracing ends when it is dropped.
#[derive(Debug)]
pub struct PerfSensor {
    rings: Vec<(u32, Ring)>,
    /// None is closed before the end: what was started by a thread that has exited inherited it.
    events: Vec<OwnedFd>,
    /// Which thread each event was opened for.
    sources: HashMap<u64, u32>,
    /// Of each thread, the one whose events tell of it: one that was started while threads were listed may be told
    /// of twice, by its own and by those that it inherited.
    told_by: HashMap<u32, u32>,
    followed: Followed,
    /// What was read and cannot be told yet, as an earlier record of another CPU may be to come.
    pending: Vec<Record>,
    /// What came of tracking.
    outbox: Vec<Event>,
    watermark_bytes: u32,
    workload: Workload,
}

impl PerfSensor {
    /// Makes the rings. Nothing is tracked yet.
    ///
    /// # Errors
    /// If the user may not have perf events, or the kernel has none.
    pub fn new() -> Result<Self, Error> {
        let cpus = open::cpus_online().map_err(Error::kernel("list the CPUs"))?;
        let mut pages = MOST_PAGES;
        let rings = loop {
            match rings(&cpus, pages) {
                // All that a user may lock: a smaller one may still find room.
                Err(Error::NoRoom) if pages > 1 => pages /= 2,
                rings => break rings?,
            }
        };
        Ok(Self {
            rings,
            events: Vec::new(),
            sources: HashMap::new(),
            told_by: HashMap::new(),
            followed: Followed::default(),
            pending: Vec::new(),
            outbox: Vec::new(),
            watermark_bytes: watermark(pages),
            workload: Workload::default(),
        })
    }

    /// Opens the events of one thread, one for each CPU.
    fn open(&mut self, tid: u32) -> Result<(), Error> {
        let mut opened = Vec::new();
        for (cpu, ring) in &self.rings {
            let event = open::open(tid, *cpu, Tells::Switches, self.watermark_bytes)
                .map_err(|source| Error::tracking(tid, source))?;
            open::write_to(&event, ring.as_fd()).map_err(Error::kernel("share a perf ring"))?;
            let number = open::number(&event).map_err(Error::kernel("identify a perf event"))?;
            opened.push((number, event));
        }
        for (number, event) in opened {
            self.sources.insert(number, tid);
            self.events.push(event);
        }
        self.told_by.insert(tid, tid);
        Ok(())
    }

    /// Reads the rings, and tells what cannot be preceded by anything any more.
    fn collect(&mut self, events: &mut Vec<Event>) {
        // Of what happened before now, all is in the rings, whichever is read first: a thread gets a CPU only after
        // the record of its leaving another one is written.
        let horizon = clock::now();
        let mut bytes = Vec::new();
        for (_, ring) in &mut self.rings {
            bytes.clear();
            ring.read(&mut bytes);
            self.pending.extend(records(&bytes));
        }
        self.pending.sort_by_key(|record| record.at);
        let ready = self.pending.partition_point(|record| record.at <= horizon);
        for record in self.pending.drain(..ready).collect::<Vec<_>>() {
            self.hear(record, events);
        }
    }

    fn hear(&mut self, record: Record, events: &mut Vec<Event>) {
        let Record { at, tid, cpu, .. } = record;
        if let What::OnCpu | What::OffCpu { .. } = record.what {
            let Some(&source) = self.sources.get(&record.source) else {
                return;
            };
            if *self.told_by.entry(tid).or_insert(source) != source {
                return;
            }
        }
        match record.what {
            What::OnCpu => self.followed.on_cpu(at, tid, cpu, events),
            What::OffCpu { ready } => self.followed.off_cpu(at, tid, ready, events),
            What::Started { parent, is_thread } => {
                if let Some(&source) = self.told_by.get(&parent) {
                    self.told_by.entry(tid).or_insert(source);
                }
                let started = Started {
                    parent,
                    tid,
                    is_thread,
                };
                self.followed.started(at, started, events);
            }
            What::Renamed { comm, by_exec } => {
                if by_exec {
                    self.followed.executed_program(at, tid, events);
                }
                self.followed.renamed(at, tid, comm, events);
            }
            What::Exited => {
                self.told_by.remove(&tid);
                self.followed.exited(at, tid, events);
            }
            What::Lost { count } => {
                self.followed.lost(at, count, events);
                self.told_by.retain(|&tid, _| self.followed.has(tid));
            }
        }
    }

    /// Sleeps until a ring is half full or `longest` is over; false if a signal came.
    fn wait(&self, longest: Span) -> Result<bool, Error> {
        let rings: Vec<_> = self.rings.iter().map(|(_, ring)| ring.as_fd()).collect();
        wait::readable(&rings, longest).map_err(Error::kernel("wait for perf's records"))
    }
}

/// Opens the rings for a moment, and says what may be heard through them.
#[must_use]
pub fn probe() -> Feature {
    const NAME: &str = "tracer perf";
    match PerfSensor::new() {
        Ok(_) => Feature::new(
            NAME,
            Support::Partial,
            "one's own programs are heard without root: bursts from when they run, not from when they are woken",
            "",
        ),
        Err(error) => Feature::new(NAME, Support::None, &error.to_string(), ""),
    }
}

fn watermark(pages: usize) -> u32 {
    // Half of it, in pages of 4 KiB; a larger page only wakes the reader earlier.
    u32::try_from(pages * 2048).unwrap_or(u32::MAX)
}

fn rings(cpus: &[u32], pages: usize) -> Result<Vec<(u32, Ring)>, Error> {
    let ring = |&cpu: &u32| {
        let event = open::open(0, cpu, Tells::Nothing, watermark(pages)).map_err(Error::opening)?;
        match Ring::map(event, pages) {
            Ok(ring) => Ok((cpu, ring)),
            Err(source) if source.raw_os_error() == Some(libc::EPERM) => Err(Error::NoRoom),
            Err(source) => Err(Error::kernel("map a perf ring")(source)),
        }
    };
    cpus.iter().map(ring).collect()
}

impl Sensor for PerfSensor {
    type Error = Error;

    fn track(&mut self, tid: u32, follow: Follow) -> Result<(), Error> {
        // What was read of a thread before it is tracked is not told.
        let mut before = Vec::new();
        self.collect(&mut before);
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
                if !self.told_by.contains_key(&thread) {
                    match self.open(thread) {
                        Ok(()) => {}
                        Err(Error::NoSuchTask { .. }) => continue,
                        Err(error) => return Err(error),
                    }
                }
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
            let over = self.followed.is_over();
            self.collect(events);
            let left = until.since(self.now());
            if over || self.followed.is_over() || left.is_zero() || !self.wait(left)? {
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
