//! The tracer without privilege: hears one's own threads through perf's records of context
//! switches.
//!
//! An event that counts nothing is opened for each thread and CPU (`perf_event_open(2)`,
//! `context_switch`); what the thread starts inherits it. The kernel writes a record whenever one
//! of them gets a CPU or leaves it, into a ring for each CPU, and says of one that leaves whether
//! it still wants to run. It does not say when one was woken: a burst begins when the thread first
//! runs, so that the time it waited before is not seen.

mod error;
mod open;
mod record;
mod ring;

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use onbeat_model::{Event, Span};

use crate::switch_sensor::{Following, Source};
use crate::task_set::{Followed, ThreadStart};
pub use error::PerfError;
use onbeat_kernel::clock;
use onbeat_kernel::{cpus, wait};
use open::Tells;
pub use record::{PerfContent, PerfRecord, records};
use ring::Ring;

/// The size of the largest ring, in pages. Half of the 516 KiB of a CPU that a user may lock by
/// default (`perf_event_mlock_kb`).
const MOST_PAGES: usize = 64;

/// Hears threads of one's own. Tracing ends when it is dropped.
pub type PerfSensor = Following<Events>;

/// The kernel's records of them.
#[derive(Debug)]
pub struct Events {
    rings: Vec<(u32, Ring)>,
    /// None is closed before the end: what was started by a thread that has exited inherited it.
    events: Vec<OwnedFd>,
    sources: HashMap<u64, u32>,
    /// The event of each thread that tells of it: one that was started while threads were listed
    /// may be told of twice, by its own and by those that it inherited.
    told_by: HashMap<u32, u32>,
    /// The records that cannot be told yet, as an earlier record of another CPU may be to come.
    pending: Vec<PerfRecord>,
    watermark_bytes: u32,
}

impl PerfSensor {
    pub fn new() -> Result<Self, PerfError> {
        Events::new().map(Self::by)
    }
}

impl Events {
    fn new() -> Result<Self, PerfError> {
        let cpus = cpus::online()
            .ok_or_else(|| std::io::Error::other("no list of CPUs in /sys"))
            .map_err(PerfError::kernel("list the CPUs"))?;
        let mut pages = MOST_PAGES;
        let rings = loop {
            match rings(&cpus, pages) {
                // All that a user may lock: a smaller one may still find room.
                Err(PerfError::NoRoom) if pages > 1 => pages /= 2,
                rings => break rings?,
            }
        };
        Ok(Self {
            rings,
            events: Vec::new(),
            sources: HashMap::new(),
            told_by: HashMap::new(),
            pending: Vec::new(),
            watermark_bytes: watermark(pages),
        })
    }

    fn open(&mut self, tid: u32) -> Result<(), PerfError> {
        let mut opened = Vec::new();
        for (cpu, ring) in &self.rings {
            let event = open::open(tid, *cpu, Tells::Switches, self.watermark_bytes)
                .map_err(|source| PerfError::tracking(tid, source))?;
            open::write_to(&event, ring.as_fd()).map_err(PerfError::kernel("share a perf ring"))?;
            let number =
                open::number(&event).map_err(PerfError::kernel("identify a perf event"))?;
            opened.push((number, event));
        }
        for (number, event) in opened {
            self.sources.insert(number, tid);
            self.events.push(event);
        }
        self.told_by.insert(tid, tid);
        Ok(())
    }

    fn hear(&mut self, record: PerfRecord, followed: &mut Followed, events: &mut Vec<Event>) {
        let PerfRecord { at, tid, cpu, .. } = record;
        if let PerfContent::OnCpu | PerfContent::OffCpu { .. } = record.what {
            let Some(&source) = self.sources.get(&record.source) else {
                return;
            };
            if *self.told_by.entry(tid).or_insert(source) != source {
                return;
            }
        }
        match record.what {
            PerfContent::OnCpu => followed.on_cpu(at, tid, cpu, events),
            PerfContent::OffCpu { ready } => followed.off_cpu(at, tid, ready, events),
            PerfContent::Started { parent, is_thread } => {
                if let Some(&source) = self.told_by.get(&parent) {
                    self.told_by.entry(tid).or_insert(source);
                }
                let started = ThreadStart {
                    parent,
                    tid,
                    is_thread,
                };
                followed.started(at, started, events);
            }
            PerfContent::Renamed { comm, by_exec } => {
                if by_exec {
                    followed.executed_program(at, tid, events);
                }
                followed.renamed(at, tid, comm, events);
            }
            PerfContent::Exited => {
                self.told_by.remove(&tid);
                followed.exited(at, tid, events);
            }
            PerfContent::Lost { count } => followed.lost(at, count, events),
        }
    }
}

fn watermark(pages: usize) -> u32 {
    // Half of it, in pages of 4 KiB; a larger page only wakes the reader earlier.
    u32::try_from(pages * 2048).unwrap_or(u32::MAX)
}

fn rings(cpus: &[u32], pages: usize) -> Result<Vec<(u32, Ring)>, PerfError> {
    let ring = |&cpu: &u32| {
        let event =
            open::open(0, cpu, Tells::Nothing, watermark(pages)).map_err(PerfError::opening)?;
        match Ring::map(event, pages) {
            Ok(ring) => Ok((cpu, ring)),
            Err(source) if source.raw_os_error() == Some(libc::EPERM) => Err(PerfError::NoRoom),
            Err(source) => Err(PerfError::kernel("map a perf ring")(source)),
        }
    };
    cpus.iter().map(ring).collect()
}

impl Source for Events {
    type Error = PerfError;

    fn add(&mut self, tid: u32) -> Result<bool, PerfError> {
        if self.told_by.contains_key(&tid) {
            return Ok(true);
        }
        match self.open(tid) {
            Ok(()) => Ok(true),
            Err(PerfError::NoSuchTask { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn collect(
        &mut self,
        followed: &mut Followed,
        events: &mut Vec<Event>,
    ) -> Result<(), PerfError> {
        // All events before now are in the rings, whichever is read first: a thread gets a CPU only
        // after the record of its leaving another one is written.
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
            self.hear(record, followed, events);
        }
        if followed.look_again(horizon, events) {
            self.told_by.retain(|&tid, _| followed.has(tid));
        }
        Ok(())
    }

    /// Wakes when a ring is half full.
    fn wait(&mut self, longest: Span) -> Result<bool, PerfError> {
        let rings: Vec<_> = self.rings.iter().map(|(_, ring)| ring.as_fd()).collect();
        wait::readable(&rings, Some(longest)).map_err(PerfError::kernel("wait for perf's records"))
    }

    fn nobody(tid: u32) -> PerfError {
        PerfError::NoSuchTask { tid }
    }
}
