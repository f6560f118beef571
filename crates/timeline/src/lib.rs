//! Writes a timeline in Perfetto's own format, for [ui.perfetto.dev](https://ui.perfetto.dev) and
//! its trace processor.
//!
//! A [`Timeline`] has tracks under groups: slices of time, instants, and counters. Slices of one
//! track must not overlap; where they may, [`Lanes`] puts each on a track that is free, and
//! Perfetto shows these as one.
//!
//! A [`Schedule`] has what ran, as the kernel's own scheduling events.
//!
//! Packets are written as they come and sorted by the reader.

mod packet;
mod schedule;

use std::io::{self, Write};

use onbeat_model::{Instant, Span};
use prost::Message;

pub use schedule::Schedule;

use packet::{
    AnnotationValue, CounterDescriptor, DebugAnnotation, TracePacket, TrackDescriptor, TrackEvent,
    Type,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Time,
    /// Per cent of a CPU.
    Percent,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Detail<'a> {
    Number(u64),
    Words(&'a str),
}

/// A timeline that is being written. The first error ends the writing; [`finish`](Self::finish)
/// returns it.
#[derive(Debug)]
pub struct Timeline<W> {
    output: W,
    tracks: u64,
    failed: Option<io::Error>,
    bytes: Vec<u8>,
}

const SEQUENCE: u32 = 1;
/// The packets before it are not needed to read it.
const INCREMENTAL_STATE_CLEARED: u32 = 1;

impl<W: Write> Timeline<W> {
    pub const fn new(output: W) -> Self {
        Self {
            output,
            tracks: 0,
            failed: None,
            bytes: Vec::new(),
        }
    }

    pub fn group(&mut self, name: &str) -> Track {
        self.describe(None, name, None)
    }

    pub fn track(&mut self, group: Track, name: &str) -> Track {
        self.describe(Some(group), name, None)
    }

    pub fn counter(&mut self, group: Track, name: &str, unit: Unit) -> Track {
        let counter = match unit {
            Unit::Time => CounterDescriptor {
                unit: Some(packet::UNIT_TIME_NS),
                unit_name: None,
            },
            Unit::Percent => CounterDescriptor {
                unit: None,
                unit_name: Some("%".to_owned()),
            },
        };
        self.describe(Some(group), name, Some(counter))
    }

    pub fn slice(
        &mut self,
        track: Track,
        name: &str,
        (from, to): (Instant, Instant),
        details: &[(&str, Detail)],
    ) {
        self.event(track, from, Type::SliceBegin, Some(name), details);
        self.event(track, to.max(from), Type::SliceEnd, None, &[]);
    }

    pub fn instant(&mut self, track: Track, name: &str, at: Instant, details: &[(&str, Detail)]) {
        self.event(track, at, Type::Instant, Some(name), details);
    }

    pub fn count(&mut self, counter: Track, at: Instant, value: i64) {
        let event = TrackEvent {
            r#type: Some(Type::Counter as i32),
            track_uuid: Some(counter.0),
            counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.packet(at, event);
    }

    pub fn finish(mut self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.output.flush(),
        }
    }

    fn describe(
        &mut self,
        group: Option<Track>,
        name: &str,
        counter: Option<CounterDescriptor>,
    ) -> Track {
        self.tracks += 1;
        let uuid = self.tracks;
        self.write(TracePacket {
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(uuid),
                name: Some(name.to_owned()),
                parent_uuid: group.map(|group| group.0),
                counter,
            }),
            sequence_flags: (uuid == 1).then_some(INCREMENTAL_STATE_CLEARED),
            ..TracePacket::default()
        });
        Track(uuid)
    }

    fn event(
        &mut self,
        track: Track,
        at: Instant,
        r#type: Type,
        name: Option<&str>,
        details: &[(&str, Detail)],
    ) {
        let details = details.iter().map(|(name, detail)| DebugAnnotation {
            name: Some((*name).to_owned()),
            value: Some(match detail {
                Detail::Number(number) => AnnotationValue::UintValue(*number),
                Detail::Words(words) => AnnotationValue::StringValue((*words).to_owned()),
            }),
        });
        let event = TrackEvent {
            r#type: Some(r#type as i32),
            track_uuid: Some(track.0),
            name: name.map(str::to_owned),
            debug_annotations: details.collect(),
            counter_value: None,
        };
        self.packet(at, event);
    }

    fn packet(&mut self, at: Instant, event: TrackEvent) {
        self.write(TracePacket {
            timestamp: Some(at.as_ns()),
            track_event: Some(event),
            ..TracePacket::default()
        });
    }

    fn write(&mut self, packet: TracePacket) {
        if self.failed.is_some() {
            return;
        }
        let trace = packet::Trace {
            packet: vec![TracePacket {
                trusted_packet_sequence_id: Some(SEQUENCE),
                ..packet
            }],
        };
        // A message of repeated fields is the concatenation of such messages with one each.
        self.bytes.clear();
        let written = trace.encode(&mut self.bytes).map_err(io::Error::other);
        self.failed = written
            .and_then(|()| self.output.write_all(&self.bytes))
            .err();
    }
}

#[derive(Debug)]
pub struct Lanes {
    group: Track,
    name: String,
    /// Each track, and until when it is in use.
    lanes: Vec<(Track, Instant)>,
}

impl Lanes {
    pub fn new(group: Track, name: &str) -> Self {
        Self {
            group,
            name: name.to_owned(),
            lanes: Vec::new(),
        }
    }

    /// Writes a slice to the first track that is free from its begin on. Assumes that they come in
    /// the order of their begins, or of their ends.
    pub fn slice<W: Write>(
        &mut self,
        timeline: &mut Timeline<W>,
        name: &str,
        (from, to): (Instant, Instant),
        details: &[(&str, Detail)],
    ) {
        let free = self.lanes.iter_mut().find(|(_, until)| *until <= from);
        let track = match free {
            Some((track, until)) => {
                *until = to.max(from);
                *track
            }
            None => {
                let track = timeline.track(self.group, &self.name);
                self.lanes.push((track, to.max(from)));
                track
            }
        };
        timeline.slice(track, name, (from, to), details);
    }
}

impl Detail<'_> {
    pub const fn ns(span: Span) -> Self {
        Self::Number(span.as_ns())
    }
}

#[cfg(test)]
mod tests;
