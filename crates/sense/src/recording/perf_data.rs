//! perf's own data, of `perf record -e 'sched:*'` or `perf sched record`, also compressed or from a
//! pipe. The fields of switches and wakeups are at the same places in every version.

use std::borrow::Cow;
use std::io::{Cursor, Read};

use linux_perf_data::linux_perf_event_reader::{EventRecord, RecordType};
use linux_perf_data::{Error, PerfFileReader, PerfFileRecord};
use onbeat_model::Instant;

use super::collected::{Collected, IN_INTERRUPT};
use super::lines::Lines;
use super::{Format, ReadError, Recording};
use crate::switch_event::{self, Fields, Raw, SchedEvent, UNTOLD};

/// The size of the header of data from a pipe.
const PIPE_HEADER: u64 = 16;

pub(super) fn read(lines: &mut Lines<'_>) -> Result<Recording, ReadError> {
    let mut bytes = Vec::new();
    (lines.read_to_end(&mut bytes)).map_err(|error| lines.failure(error))?;
    let mut collected = Collected::default();
    let ended = events(bytes, &mut collected);
    let reason = match ended {
        Err(error) if collected.is_empty() => {
            format!(
                "it is perf's data, which is broken or cut off ({error}): copy or record it again"
            )
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
    Err(lines.refused(reason))
}

fn events(bytes: Vec<u8>, collected: &mut Collected) -> Result<(), Error> {
    let is_pipe = word(&bytes, 8) == Some(PIPE_HEADER);
    let bytes = match is_pipe {
        true => without_formats(&bytes),
        false => has_all_its_sections(&bytes).map(|()| bytes),
    };
    let source = Cursor::new(bytes.ok_or(Error::FeatureSectionTooSmall)?);
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
        // The crate panics at some others that are broken.
        if !matches!(record.record_type, RecordType::SAMPLE | RecordType::LOST) {
            continue;
        }
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

/// The number of the section that names the events.
const EVENT_DESC: u64 = 12;

/// Data from a pipe without the formats of the events, which stand between two records; none if it
/// describes more events than it has.
fn without_formats(bytes: &[u8]) -> Option<Vec<u8>> {
    const TRACING_DATA: u32 = 66;
    const FEATURE: u32 = 80;
    let (mut kept, mut at) = (bytes.get(..16)?.to_vec(), 16);
    while let (Some(kind), Some(size)) = (half(bytes, at), half(bytes, at + 4)) {
        let end = at + (size >> 16).max(8) as usize;
        let record = bytes.get(at..end.min(bytes.len()))?;
        if kind == FEATURE && word(record, 8) == Some(EVENT_DESC) {
            describes_what_it_has(record.get(16..)?)?;
        }
        at = end;
        if kind == TRACING_DATA {
            at += half(record, 8).unwrap_or_default() as usize;
        } else {
            kept.extend(record);
        }
    }
    Some(kept)
}

/// Some if each section of a file lies in it, and one names the events. Memory is set aside by
/// their sizes.
fn has_all_its_sections(bytes: &[u8]) -> Option<()> {
    let place = |at| usize::try_from(word(bytes, at)?).ok();
    let section = |at: usize| {
        let (begin, size) = (place(at)?, place(at + 8)?);
        bytes.get(begin..begin.checked_add(size)?)
    };
    [24, 40, 56]
        .into_iter()
        .try_for_each(|at| section(at).map(drop))?;
    let flags = |number: u64| word(bytes, 72 + number as usize / 64 * 8);
    let has = |number| flags(number).is_some_and(|flags| flags >> (number % 64) & 1 == 1);
    let mut entry = place(40)?.checked_add(place(48)?)?;
    for feature in (0..256).filter(|&number| has(number)) {
        let section = section(entry)?;
        entry += 16;
        if feature == EVENT_DESC {
            describes_what_it_has(section)?;
        }
    }
    has(EVENT_DESC).then_some(())
}

/// Some if this section has all the events that it counts, and they have all their numbers.
fn describes_what_it_has(section: &[u8]) -> Option<()> {
    let size = |at| Some(half(section, at)? as usize);
    let (events, attribute) = (size(0)?, size(4)?);
    let mut at = 8;
    for _ in 0..events {
        at += attribute;
        at += 8 + size(at + 4)? + 8 * size(at)?;
        section.get(..at)?;
    }
    Some(())
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    let number = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(u32::from_le_bytes(number))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let number = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
    Some(u64::from_le_bytes(number))
}

/// The bytes of an event, in which each field has its place.
struct Placed<'a>(&'a [u8]);

impl Fields for Placed<'_> {
    fn number(&self, name: &str) -> Option<i64> {
        match name {
            "pid" | "prev_pid" => half(self.0, 24).map(i64::from),
            "next_pid" => half(self.0, 56).map(i64::from),
            "prev_state" => word(self.0, 32).map(u64::cast_signed),
            // Of the other events kernels have them at different places.
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        let at = if name == "next_comm" { 40 } else { 8 };
        let name = self.0.get(at..at + 16)?.split(|&byte| byte == 0).next()?;
        Some(String::from_utf8_lossy(name))
    }
}

fn said(name: &str, raw: &[u8], current: u32) -> Option<SchedEvent> {
    let in_interrupt = u32::from(*raw.get(2)?) & IN_INTERRUPT != 0;
    let name = name.strip_prefix("sched:")?.split(['/', ':']).next()?;
    switch_event::of_fields(name, &Placed(raw), if in_interrupt { 0 } else { current })
}
