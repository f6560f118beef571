//! perf's own data, of `perf record -e 'sched:*'` or `perf sched record`, also compressed or from a
//! pipe. The fields of the kernel's events are at the same places in every version.

use std::io::{Cursor, Read};

use linux_perf_data::linux_perf_event_reader::EventRecord;
use linux_perf_data::{Error, PerfFileReader, PerfFileRecord};
use onbeat_model::{Instant, Name};

use super::collected::{Collected, IN_INTERRUPT};
use super::lines::Lines;
use super::{Format, ReadError, Recording};
use crate::switch_event::{Mention, Raw, SchedEvent, UNTOLD, WakeupKind, is_ready};

/// The size of the header of data from a pipe.
const PIPE_HEADER: [u8; 8] = 16_u64.to_le_bytes();

/// Reads a whole recording.
pub(super) fn read(lines: &mut Lines<'_>) -> Result<Recording, ReadError> {
    let path = lines.path().to_owned();
    let mut bytes = Vec::new();
    (lines.read_to_end(&mut bytes)).map_err(|error| lines.failure(error))?;
    let mut collected = Collected::default();
    let ended = events(bytes, &mut collected);
    let reason = match ended {
        Err(error) if collected.is_empty() => {
            format!("it is perf's data, which is broken ({error})")
        }
        _ if collected.is_empty() => {
            "it is perf's data without events of the scheduler: record with 'perf sched record'"
                .into()
        }
        Err(error) => {
            collected.cut_off(&format!("a record ({error})"));
            return Ok(collected.into_recording(Format::PerfScript));
        }
        Ok(()) => return Ok(collected.into_recording(Format::PerfScript)),
    };
    Err(ReadError::NotARecording { path, reason })
}

fn events(bytes: Vec<u8>, collected: &mut Collected) -> Result<(), Error> {
    let is_pipe = bytes.get(8..16) == Some(&PIPE_HEADER[..]);
    let source = Cursor::new(if is_pipe {
        without_formats(&bytes)
    } else {
        bytes
    });
    let PerfFileReader {
        mut perf_file,
        mut record_iter,
    } = match is_pipe {
        true => PerfFileReader::parse_pipe(source)?,
        false => PerfFileReader::parse_file(source)?,
    };
    while let Some(record) = record_iter.next_record(&mut perf_file)? {
        let PerfFileRecord::EventRecord { attr_index, record } = record else {
            continue;
        };
        match record.parse()? {
            EventRecord::Lost(lost) => collected.lost(lost.count),
            EventRecord::Sample(sample) => {
                let attribute = perf_file.event_attributes().get(attr_index);
                let name = attribute
                    .and_then(|attribute| attribute.name())
                    .unwrap_or("");
                let raw = sample.raw.map(|raw| raw.as_slice().into_owned());
                let tid = sample.tid.map_or(UNTOLD, i32::cast_unsigned);
                if let Some(pid) = sample.pid.filter(|&pid| pid >= 0) {
                    collected.process(tid, pid.cast_unsigned());
                }
                collected.event(Raw {
                    at: Instant::from_ns(sample.timestamp.unwrap_or_default()),
                    cpu: sample.cpu,
                    current: tid,
                    what: said(name, &raw.unwrap_or_default(), tid).unwrap_or(SchedEvent::Other),
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Data from a pipe without the formats of the events, which stand between two records.
fn without_formats(bytes: &[u8]) -> Vec<u8> {
    const TRACING_DATA: u32 = 66;
    let (mut kept, mut at) = (bytes.get(..16).unwrap_or_default().to_vec(), 16);
    let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    while let (Some(kind), Some(size)) = (number(at), number(at + 4)) {
        let record = (size >> 16).max(8) as usize;
        let rest = bytes.get(at..).unwrap_or_default();
        if kind == TRACING_DATA {
            at += number(at + 8).unwrap_or_default() as usize;
        } else {
            kept.extend(&rest[..record.min(rest.len())]);
        }
        at += record;
    }
    kept
}

/// The content of the event `name` with these bytes.
fn said(name: &str, raw: &[u8], current: u32) -> Option<SchedEvent> {
    let tid = |at: usize| Some(u32::from_le_bytes(raw.get(at..at + 4)?.try_into().ok()?));
    let thread = |comm: usize, number| {
        let name = raw.get(comm..comm + 16)?.split(|&byte| byte == 0).next()?;
        let (tid, comm) = (tid(number)?, Name::new(name));
        Some(Mention { tid, comm })
    };
    let wakeup = |kind| {
        let waker = if u32::from(*raw.get(2)?) & IN_INTERRUPT == 0 {
            current
        } else {
            0
        };
        let task = thread(8, 24)?;
        Some(SchedEvent::Wakeup { kind, task, waker })
    };
    match name.strip_prefix("sched:")?.split(['/', ':']).next()? {
        "sched_switch" => Some(SchedEvent::Switch {
            from: thread(8, 24)?,
            ready: is_ready(i64::from_le_bytes(raw.get(32..40)?.try_into().ok()?)),
            to: thread(40, 56)?,
        }),
        "sched_waking" => wakeup(WakeupKind::Waking),
        "sched_wakeup" => wakeup(WakeupKind::Wakeup),
        "sched_wakeup_new" => wakeup(WakeupKind::New),
        "sched_process_exit" => Some(SchedEvent::Exit { tid: tid(24)? }),
        _ => None,
    }
}
