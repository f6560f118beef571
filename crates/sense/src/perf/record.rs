//! Reads the kernel's records of context switches, as they lie in a ring (`perf_event_open(2)`).
//!
//! Each ends with what all of them have in common (PERF_SAMPLE_TID, TIME, ID and CPU, by
//! `sample_id_all`). Bytes that are no whole record of a known kind are passed over.

use onbeat_model::{Instant, Name};
use perf_event_open_sys::bindings as kernel;

const HEADER: usize = 8;
/// Thread's process and number, time, event's number, CPU.
const TRAILER: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfRecord {
    pub at: Instant,
    pub tid: u32,
    /// The number of the event that told it; children have those of their parents.
    pub source: u64,
    pub cpu: u32,
    pub what: PerfContent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfContent {
    OnCpu,
    OffCpu {
        ready: bool,
    },
    Started {
        parent: u32,
        is_thread: bool,
    },
    Renamed {
        comm: Name,
        by_exec: bool,
    },
    Exited,
    /// Records before this one found no room.
    Lost {
        count: u64,
    },
}

pub fn records(bytes: &[u8]) -> Vec<PerfRecord> {
    let mut records = Vec::new();
    let mut rest = bytes;
    while let Some(size) = short(rest, 6).map(usize::from) {
        let (Some(record), Some(next)) = (rest.get(..size), rest.get(size.max(HEADER)..)) else {
            break;
        };
        records.extend(record_in(record));
        rest = next;
    }
    records
}

fn record_in(bytes: &[u8]) -> Option<PerfRecord> {
    let (kind, misc) = (word(bytes, 0)?, u32::from(short(bytes, 4)?));
    let trailer = bytes.len().checked_sub(TRAILER)?;
    let body = bytes.get(HEADER..trailer)?;
    let common = bytes.get(trailer..)?;
    let mut tid = word(common, 4)?;
    let has = |flag| misc & flag != 0;
    let what = match kind {
        kernel::PERF_RECORD_SWITCH if has(kernel::PERF_RECORD_MISC_SWITCH_OUT) => {
            PerfContent::OffCpu {
                ready: has(kernel::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT),
            }
        }
        kernel::PERF_RECORD_SWITCH => PerfContent::OnCpu,
        kernel::PERF_RECORD_FORK => {
            tid = word(body, 8)?;
            PerfContent::Started {
                parent: word(body, 12)?,
                is_thread: word(body, 0)? == word(body, 4)?,
            }
        }
        kernel::PERF_RECORD_EXIT => {
            tid = word(body, 8)?;
            PerfContent::Exited
        }
        kernel::PERF_RECORD_COMM => {
            tid = word(body, 4)?;
            PerfContent::Renamed {
                comm: Name::new(body.get(8..)?),
                by_exec: has(kernel::PERF_RECORD_MISC_COMM_EXEC),
            }
        }
        kernel::PERF_RECORD_LOST => PerfContent::Lost {
            count: long(body, 8)?,
        },
        _ => return None,
    };
    Some(PerfRecord {
        at: Instant::from_ns(long(common, 8)?),
        tid,
        source: long(common, 16)?,
        cpu: word(common, 24)?,
        what,
    })
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*bytes))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as the kernel lays it out: of thread 7 in process 5, at 9 ns, by event 3, on CPU 1.
    fn laid_out(kind: u32, misc: u32, body: &[u8]) -> Vec<u8> {
        let size = (HEADER + body.len() + TRAILER) as u16;
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend((misc as u16).to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(body);
        bytes.extend([5_u32, 7].map(u32::to_ne_bytes).concat());
        bytes.extend([9_u64, 3, 1].map(u64::to_ne_bytes).concat());
        bytes
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn whats(bytes: &[u8]) -> Vec<(u32, PerfContent)> {
        let records = records(bytes);
        for record in &records {
            assert_eq!((record.at.as_ns(), record.source, record.cpu), (9, 3, 1));
        }
        records
            .iter()
            .map(|record| (record.tid, record.what))
            .collect()
    }

    #[test]
    fn a_name_and_a_loss_are_read() {
        let mut body = words(&[5, 6]);
        body.extend(*b"player\0\0");
        let lost = [1_u64, 40].map(u64::to_ne_bytes).concat();
        let bytes = [
            laid_out(
                kernel::PERF_RECORD_COMM,
                kernel::PERF_RECORD_MISC_COMM_EXEC,
                &body,
            ),
            laid_out(kernel::PERF_RECORD_LOST, 0, &lost),
        ];
        let renamed = PerfContent::Renamed {
            comm: Name::from("player"),
            by_exec: true,
        };
        assert_eq!(
            whats(&bytes.concat()),
            [(6, renamed), (7, PerfContent::Lost { count: 40 })]
        );
    }
}
