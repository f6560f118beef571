//! Perfetto's traces (`.pftrace`): the kernel's events in its bundles of ftrace events, one by one
//! or, switches and wakings, as columns (`compact_sched`). Names and numbers of fields are those of
//! its `protos/perfetto/trace`.

mod packets;

use std::io::Read;

use flate2::read::ZlibDecoder;
use onbeat_model::{Instant, Name};
use prost::Message;

use super::collected::{Collected, IN_INTERRUPT};
use super::lines::Lines;
use super::{Format, ReadError, Recording};
use crate::switch_event::{self, Mention, Raw, SchedEvent, UNTOLD, WakeupKind};
use packets::{AGAIN, MESSAGE_BYTES, Packets, Trouble};

pub(super) use packets::is_trace;

/// The messages, each field with its number. Events and names are kept as bytes: many empty events
/// are not each as large as the largest one, and a name may be no UTF-8.
macro_rules! messages {
    ($(struct $name:ident { $($number:tt [$($kind:tt)+] $field:ident: $type:ty,)+ })+) => {
        $(#[derive(Clone, PartialEq, Message)]
        struct $name { $(#[prost($($kind)+, tag = $number)] $field: $type,)+ })+
    };
}

messages! {
    struct TracePacket {
        "1" [bytes = "vec", optional] ftrace_events: Option<Vec<u8>>,
        "2" [bytes = "vec", optional] process_tree: Option<Vec<u8>>,
        "50" [bytes = "vec", optional] compressed: Option<Vec<u8>>,
        "98" [uint32, optional] machine_id: Option<u32>,
        "133" [bytes = "vec", optional] compressed_with_zstd: Option<Vec<u8>>,
    }
    struct ProcessTree {
        "2" [message, repeated] threads: Vec<ThreadOf>,
    }
    struct ThreadOf {
        "1" [uint32] tid: u32,
        "3" [uint32] tgid: u32,
    }
    struct FtraceEventBundle {
        "1" [uint32] cpu: u32,
        "2" [bytes = "vec", repeated] events: Vec<Vec<u8>>,
        "3" [bool] lost_events: bool,
        "4" [message, optional] compact: Option<CompactSched>,
    }
    struct CompactSched {
        "1" [uint64, repeated] switch_times: Vec<u64>,
        "2" [int64, repeated] prev_states: Vec<i64>,
        "3" [uint32, repeated] next_tids: Vec<u32>,
        "5" [bytes = "vec", repeated] names: Vec<Vec<u8>>,
        "6" [uint32, repeated] next_names: Vec<u32>,
        "7" [uint64, repeated] waking_times: Vec<u64>,
        "8" [uint32, repeated] woken_tids: Vec<u32>,
        "11" [uint32, repeated] woken_names: Vec<u32>,
        "12" [uint32, repeated] waking_flags: Vec<u32>,
    }
    struct FtraceEvent {
        "1" [uint64, optional] timestamp: Option<u64>,
        "2" [uint32, optional] pid: Option<u32>,
        "5" [uint32, optional] common_flags: Option<u32>,
        "4" [message, optional] switch: Option<SwitchFields>,
        "17" [message, optional] wakeup: Option<ThreadFields>,
        "20" [message, optional] waking: Option<ThreadFields>,
        "114" [message, optional] wakeup_new: Option<ThreadFields>,
        "235" [message, optional] newtask: Option<TaskFields>,
        "236" [message, optional] rename: Option<TaskFields>,
        "238" [message, optional] exit: Option<ThreadFields>,
        "239" [message, optional] fork: Option<ForkFields>,
    }
    struct SwitchFields {
        "1" [bytes = "vec"] prev_comm: Vec<u8>,
        "2" [uint32] prev_tid: u32,
        "4" [int64] prev_state: i64,
        "5" [bytes = "vec"] next_comm: Vec<u8>,
        "6" [uint32] next_tid: u32,
    }
    struct ThreadFields {
        "1" [bytes = "vec"] comm: Vec<u8>,
        "2" [uint32] tid: u32,
    }
    struct TaskFields {
        "1" [uint32] tid: u32,
        "2" [bytes = "vec"] comm: Vec<u8>,
        "3" [bytes = "vec"] newcomm: Vec<u8>,
    }
    struct ForkFields {
        "3" [bytes = "vec"] child_comm: Vec<u8>,
        "4" [uint32] child_tid: u32,
    }
}

pub(super) fn read(lines: &mut Lines<'_>) -> Result<Recording, ReadError> {
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
                path: lines.path().to_owned(),
                offset,
                problem,
            });
        }
    }
    if collected.is_empty() {
        return Err(lines.refused(
            "it is a Perfetto trace without the kernel's scheduling events; record with the data source \
             'linux.ftrace' and the events 'sched/sched_switch' and 'sched/sched_waking'",
        ));
    }
    Ok(collected.into_recording(Format::Perfetto))
}

/// Takes in a `TracePacket`, and those that are compressed in it.
fn take(packet: &[u8], collected: &mut Collected) -> Result<(), String> {
    let broken = |what| format!("{what} broken{AGAIN}");
    let packet = TracePacket::decode(packet).map_err(|_| broken("this packet is"))?;
    if packet.machine_id.is_some_and(|machine| machine != 0) {
        return Err(
            "it is of more than one machine (machine_id), whose threads have the same numbers: \
             record each machine on its own"
                .into(),
        );
    }
    if let Some(events) = packet.ftrace_events {
        bundle(&events, collected).ok_or_else(|| broken("the ftrace events of this packet are"))?;
    }
    if let Some(tree) = packet.process_tree {
        let tree = ProcessTree::decode(&tree[..])
            .map_err(|_| broken("the processes of this packet are"))?;
        for thread in tree.threads {
            collected.process(thread.tid, thread.tgid);
        }
    }
    let damaged = || format!("the compressed packets here are damaged{AGAIN}");
    let mut unpacked = Vec::new();
    let compressed: Box<dyn Read> = match (&packet.compressed, &packet.compressed_with_zstd) {
        (Some(packets), _) => Box::new(ZlibDecoder::new(&packets[..])),
        (None, Some(packets)) => {
            unpacked.reserve(MESSAGE_BYTES as usize);
            zstd_safe::decompress(&mut unpacked, packets).map_err(|_| damaged())?;
            Box::new(&unpacked[..])
        }
        (None, None) => return Ok(()),
    };
    let mut inner = Packets::new(compressed);
    loop {
        match inner.next() {
            Ok(None) => return Ok(()),
            // They hold no compressed ones themselves.
            Ok(Some(packet)) if !is_compressed(packet) => take(packet, collected)?,
            _ => return Err(damaged()),
        }
    }
}

fn is_compressed(packet: &[u8]) -> bool {
    TracePacket::decode(packet)
        .is_ok_and(|packet| packet.compressed.is_some() || packet.compressed_with_zstd.is_some())
}

fn bundle(message: &[u8], collected: &mut Collected) -> Option<()> {
    let bundle = FtraceEventBundle::decode(message).ok()?;
    let mut raws = Vec::new();
    for message in &bundle.events {
        let event = FtraceEvent::decode(&message[..]).ok()?;
        let current = event.pid.unwrap_or(UNTOLD);
        raws.extend(event.timestamp.map(|at| raw(at, current, said(event))));
    }
    if let Some(compact) = bundle.compact {
        compact_events(&compact, &mut raws)?;
    }
    if let Some(first) = raws
        .iter()
        .map(|raw| raw.at)
        .min()
        .filter(|_| bundle.lost_events)
    {
        // How many is not told.
        collected.lost_at(first, 1);
    }
    let cpu = Some(bundle.cpu);
    raws.into_iter()
        .for_each(|raw| collected.event(Raw { cpu, ..raw }));
    Some(())
}

const fn raw(at: u64, current: u32, what: SchedEvent) -> Raw {
    Raw {
        at: Instant::from_ns(at),
        cpu: None,
        current,
        what,
    }
}

fn mention(tid: u32, comm: &[u8]) -> Mention {
    Mention {
        tid,
        comm: Name::new(comm),
    }
}

/// The thread that runs there is the waker, unless an interrupt is, or it is not known.
fn wakeup(kind: WakeupKind, task: Mention, flags: Option<u32>) -> SchedEvent {
    let waker = match flags {
        Some(flags) if flags & IN_INTERRUPT == 0 => UNTOLD,
        _ => 0,
    };
    SchedEvent::Wakeup { kind, task, waker }
}

fn said(event: FtraceEvent) -> SchedEvent {
    let woken =
        |kind, of: ThreadFields| wakeup(kind, mention(of.tid, &of.comm), event.common_flags);
    if let Some(of) = event.switch {
        SchedEvent::Switch {
            from: mention(of.prev_tid, &of.prev_comm),
            ready: switch_event::is_ready(of.prev_state),
            to: mention(of.next_tid, &of.next_comm),
        }
    } else if let Some(of) = event.waking {
        woken(WakeupKind::Waking, of)
    } else if let Some(of) = event.wakeup {
        woken(WakeupKind::Wakeup, of)
    } else if let Some(of) = event.wakeup_new {
        woken(WakeupKind::New, of)
    } else if let Some(of) = event.newtask {
        // What Perfetto's own configurations record instead of `sched_process_fork`.
        let (parent, child) = (event.pid.unwrap_or(UNTOLD), mention(of.tid, &of.comm));
        SchedEvent::Fork { parent, child }
    } else if let Some(of) = event.fork {
        let (parent, child) = (
            event.pid.unwrap_or(UNTOLD),
            mention(of.child_tid, &of.child_comm),
        );
        SchedEvent::Fork { parent, child }
    } else if let Some(of) = event.rename {
        SchedEvent::Renamed {
            task: mention(of.tid, &of.newcomm),
        }
    } else if let Some(of) = event.exit {
        SchedEvent::Exit { tid: of.tid }
    } else {
        SchedEvent::Other
    }
}

/// Switches and wakings in columns, each time but the first as what is added to the one before.
/// None if the columns are of different lengths.
fn compact_events(compact: &CompactSched, raws: &mut Vec<Raw>) -> Option<()> {
    let name = |index: &u32| compact.names.get(*index as usize).map(Vec::as_slice);
    let mut at = 0_u64;
    for (row, &delta) in compact.switch_times.iter().enumerate() {
        at = at.checked_add(delta)?;
        let to = mention(
            *compact.next_tids.get(row)?,
            name(compact.next_names.get(row)?)?,
        );
        let ready = switch_event::is_ready(*compact.prev_states.get(row)?);
        let from = mention(UNTOLD, b"");
        raws.push(raw(at, UNTOLD, SchedEvent::Switch { from, ready, to }));
    }
    let mut at = 0_u64;
    for (row, &delta) in compact.waking_times.iter().enumerate() {
        at = at.checked_add(delta)?;
        let task = mention(
            *compact.woken_tids.get(row)?,
            name(compact.woken_names.get(row)?)?,
        );
        let flags = compact.waking_flags.get(row).copied();
        raws.push(raw(at, UNTOLD, wakeup(WakeupKind::Waking, task, flags)));
    }
    Some(())
}
