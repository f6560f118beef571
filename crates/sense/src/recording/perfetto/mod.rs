//! Perfetto's traces (`.pftrace`): the kernel's events in its bundles of ftrace events, one by one
//! or, switches and wakings, as columns (`compact_sched`). Names and numbers of fields are those of
//! its `protos/perfetto/trace`.

mod packets;

use onbeat_model::{Instant, Name};

use super::collected::Collected;
use super::lines::Lines;
use super::proto::{MalformedMessage, MessageFields, ProtoValue, extend};
use super::{Format, ReadError, Recording};
use crate::switch_event::{self, Mention, Raw, SchedEvent, UNTOLD, WakeupKind};
use packets::{Packets, Trouble};

/// `FtraceEvent.common_flags` and `waking_common_flags`: in an interrupt, hard, soft or not
/// maskable.
const IN_INTERRUPT: u64 = 0x08 | 0x10 | 0x40;

pub(super) use packets::is_trace;

/// Reads a whole recording.
pub(super) fn read(lines: &mut Lines<'_>) -> Result<Recording, ReadError> {
    let path = lines.path().to_owned();
    let mut collected = Collected::default();
    let mut packets = Packets::new(&mut *lines);
    let trouble = loop {
        match packets.next() {
            Ok(Some(packet)) => {
                if let Err(problem) = take(packet, &mut collected) {
                    break Trouble::Broken(problem);
                }
            }
            Ok(None) => break Trouble::None,
            Err(trouble) => break trouble,
        }
    };
    let offset = packets.offset();
    match trouble {
        Trouble::None => {}
        Trouble::Cut => collected.cut_off(&format!("the packet at byte {offset}")),
        Trouble::Unreadable(error) => return Err(lines.failure(error)),
        Trouble::Broken(problem) => {
            return Err(ReadError::BrokenBytes {
                path,
                offset,
                problem: format!("{problem}: copy or record it again"),
            });
        }
    }
    if collected.is_empty() {
        return Err(ReadError::NotARecording {
            path,
            reason: "it is a Perfetto trace without the kernel's scheduling events; record with the data source \
                     'linux.ftrace' and the events 'sched/sched_switch' and 'sched/sched_waking'"
                .into(),
        });
    }
    Ok(collected.into_recording(Format::Perfetto))
}

/// Takes in a `TracePacket`, and those that are compressed in it.
fn take(packet: &[u8], collected: &mut Collected) -> Result<(), String> {
    for field in MessageFields::new(packet) {
        match field.map_err(broken)? {
            (1, value) => value
                .bytes()
                .and_then(|message| bundle(message, collected))
                .map_err(|MalformedMessage| {
                    "the ftrace events of this packet are broken".to_owned()
                })?,
            (2, value) => value
                .bytes()
                .and_then(|message| process_tree(message, collected))
                .map_err(|MalformedMessage| "the processes of this packet are broken".to_owned())?,
            (50, value) => {
                let compressed = value.bytes().map_err(broken)?;
                let mut inner = Packets::new(flate2::read::ZlibDecoder::new(compressed));
                loop {
                    match inner.next() {
                        // They hold no compressed ones themselves.
                        Ok(Some(packet)) if is_compressed(packet) => {
                            return Err(broken(MalformedMessage));
                        }
                        Ok(Some(packet)) => take(packet, collected)?,
                        Ok(None) => break,
                        Err(_) => return Err("the compressed packets here are damaged".into()),
                    }
                }
            }
            (133, _) => {
                return Err(
                    "the packets are compressed with zstd, which onbeat does not read; first turn it into FILE \
                     with 'traceconv decompress_packets'"
                        .into(),
                );
            }
            _ => {}
        }
    }
    Ok(())
}

fn broken(_: MalformedMessage) -> String {
    "this packet is broken".to_owned()
}

fn is_compressed(packet: &[u8]) -> bool {
    MessageFields::new(packet).any(|field| matches!(field, Ok((50 | 133, _))))
}

/// `ProcessTree`: the process of each thread, and the parent of each process.
fn process_tree(message: &[u8], collected: &mut Collected) -> Result<(), MalformedMessage> {
    for field in MessageFields::new(message) {
        if let (2, thread) = field? {
            let (mut tid, mut pid) = (0, 0);
            for field in MessageFields::new(thread.bytes()?) {
                match field? {
                    (1, value) => tid = value.tid()?,
                    (3, value) => pid = value.tid()?,
                    _ => {}
                }
            }
            collected.process(tid, pid);
        }
    }
    Ok(())
}

/// `FtraceEventBundle`: events of one CPU.
fn bundle(message: &[u8], collected: &mut Collected) -> Result<(), MalformedMessage> {
    let mut cpu = 0;
    let mut lost = false;
    let mut raws = Vec::new();
    for field in MessageFields::new(message) {
        match field? {
            (1, value) => cpu = u32::try_from(value.number()?).map_err(|_| MalformedMessage)?,
            (2, value) => raws.extend(event(value.bytes()?)?),
            (3, value) => lost = value.number()? != 0,
            (4, value) => compact(value.bytes()?, &mut raws)?,
            _ => {}
        }
    }
    if let Some(first) = raws.iter().map(|raw| raw.at).min().filter(|_| lost) {
        // How many is not told.
        collected.lost_at(first, 1);
    }
    for raw in raws {
        collected.event(Raw {
            cpu: Some(cpu),
            ..raw
        });
    }
    Ok(())
}

/// `FtraceEvent`; none if it has no time.
fn event(message: &[u8]) -> Result<Option<Raw>, MalformedMessage> {
    let (mut at, mut current, mut flags) = (None, UNTOLD, None);
    let mut payload = None;
    for field in MessageFields::new(message) {
        match field? {
            (1, value) => at = Some(Instant::from_ns(value.number()?)),
            (2, value) => current = value.tid()?,
            (5, ProtoValue::Number(number)) => flags = Some(number),
            (number, ProtoValue::Bytes(bytes)) => payload = Some((number, bytes)),
            _ => {}
        }
    }
    let what = match payload {
        Some((number, bytes)) => said(number, &EventFields::read(bytes)?, current, waker(flags)),
        None => SchedEvent::Other,
    };
    Ok(at.map(|at| Raw {
        at,
        cpu: None,
        current,
        what,
    }))
}

/// The thread that ran there is the waker, unless an interrupt is, or it is not known.
fn waker(flags: Option<u64>) -> u32 {
    match flags {
        Some(flags) if flags & IN_INTERRUPT == 0 => UNTOLD,
        _ => 0,
    }
}

/// The fields of an event by their numbers; no event that is used has more than seven.
#[derive(Default)]
struct EventFields<'a> {
    numbers: [u64; 8],
    names: [&'a [u8]; 8],
}

impl<'a> EventFields<'a> {
    fn read(message: &'a [u8]) -> Result<Self, MalformedMessage> {
        let mut said = Self::default();
        for field in MessageFields::new(message) {
            let (number, value) = field?;
            let place = usize::try_from(number).map_err(|_| MalformedMessage)?;
            match value {
                ProtoValue::Number(number) => said
                    .numbers
                    .get_mut(place)
                    .map(|kept| *kept = number)
                    .is_some(),
                ProtoValue::Bytes(name) => {
                    said.names.get_mut(place).map(|kept| *kept = name).is_some()
                }
            };
        }
        Ok(said)
    }

    /// The thread whose name and number are in these fields; none if the number is that of no
    /// thread.
    fn thread<const NAME: usize, const TID: usize>(&self) -> Option<Mention> {
        Some(Mention {
            tid: u32::try_from(self.numbers[TID]).ok()?,
            comm: Name::new(self.names[NAME]),
        })
    }
}

/// The content of the event with the field number `event`, by the thread `current`.
fn said(event: u32, said: &EventFields<'_>, current: u32, waker: u32) -> SchedEvent {
    let wakeup = |kind| {
        let task = said.thread::<1, 2>()?;
        Some(SchedEvent::Wakeup { kind, task, waker })
    };
    let what = match event {
        4 => said
            .thread::<1, 2>()
            .zip(said.thread::<5, 6>())
            .map(|(from, to)| SchedEvent::Switch {
                from,
                ready: switch_event::is_ready(said.numbers[4].cast_signed()),
                to,
            }),
        17 => wakeup(WakeupKind::Wakeup),
        20 => wakeup(WakeupKind::Waking),
        114 => wakeup(WakeupKind::New),
        // `task_newtask` and `sched_process_fork`; the first is what Perfetto's own configurations
        // record.
        235 => said.thread::<2, 1>().map(|child| SchedEvent::Fork {
            parent: current,
            child,
        }),
        239 => said.thread::<3, 4>().map(|child| SchedEvent::Fork {
            parent: current,
            child,
        }),
        236 => said
            .thread::<3, 1>()
            .map(|task| SchedEvent::Renamed { task }),
        238 => said
            .thread::<1, 2>()
            .map(|task| SchedEvent::Exit { tid: task.tid }),
        _ => None,
    };
    what.unwrap_or(SchedEvent::Other)
}

/// `CompactSched`: switches and wakings in columns, each time but the first as what is added to the
/// one before.
fn compact(message: &[u8], raws: &mut Vec<Raw>) -> Result<(), MalformedMessage> {
    let mut names: Vec<Name> = Vec::new();
    let mut columns: [Vec<u64>; 13] = Default::default();
    for field in MessageFields::new(message) {
        match field? {
            (5, value) => names.push(Name::new(value.bytes()?)),
            (number, value) => {
                let column = usize::try_from(number).ok();
                if let Some(column) = column.and_then(|number| columns.get_mut(number)) {
                    extend(column, value)?;
                }
            }
        }
    }
    let name = |index: u64| {
        let index = usize::try_from(index).ok();
        index
            .and_then(|index| names.get(index).copied())
            .ok_or(MalformedMessage)
    };
    let [
        _,
        switched,
        states,
        next,
        _,
        _,
        next_names,
        woken,
        woken_tids,
        _,
        _,
        woken_names,
        flags,
    ] = &columns;
    let are_even =
        |columns: &[&Vec<u64>], length: usize| columns.iter().all(|column| column.len() == length);
    if !are_even(&[states, next, next_names], switched.len())
        || !are_even(&[woken_tids, woken_names], woken.len())
        || !(flags.is_empty() || flags.len() == woken.len())
    {
        return Err(MalformedMessage);
    }
    let mut add = |at, what| {
        raws.push(Raw {
            at,
            cpu: None,
            current: UNTOLD,
            what,
        });
    };
    let mut clock = DeltaClock::default();
    for (((&delta, &state), &tid), &index) in switched.iter().zip(states).zip(next).zip(next_names)
    {
        let from = Mention {
            tid: UNTOLD,
            comm: Name::default(),
        };
        let to = Mention {
            tid: ProtoValue::Number(tid).tid()?,
            comm: name(index)?,
        };
        let ready = switch_event::is_ready(state.cast_signed());
        add(clock.after(delta)?, SchedEvent::Switch { from, ready, to });
    }
    let mut clock = DeltaClock::default();
    let flags = flags
        .iter()
        .copied()
        .map(Some)
        .chain(std::iter::repeat(None));
    for (((&delta, &tid), &index), flags) in
        woken.iter().zip(woken_tids).zip(woken_names).zip(flags)
    {
        let task = Mention {
            tid: ProtoValue::Number(tid).tid()?,
            comm: name(index)?,
        };
        let kind = WakeupKind::Waking;
        let waker = waker(flags);
        add(
            clock.after(delta)?,
            SchedEvent::Wakeup { kind, task, waker },
        );
    }
    Ok(())
}

/// Adds up times.
#[derive(Default)]
struct DeltaClock(u64);

impl DeltaClock {
    fn after(&mut self, delta: u64) -> Result<Instant, MalformedMessage> {
        self.0 = self.0.checked_add(delta).ok_or(MalformedMessage)?;
        Ok(Instant::from_ns(self.0))
    }
}
