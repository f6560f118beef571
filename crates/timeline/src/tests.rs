use onbeat_model::{Burst, Event, Name, Task, TaskId};
use prost::encoding::decode_varint;

use super::*;
use packet::Trace;

fn at(ns: u64) -> Instant {
    Instant::from_ns(ns)
}

/// The first value to which this path of field numbers leads, read off the wire.
fn on_wire(mut message: &[u8], path: &[u64]) -> Option<u64> {
    let (field, deeper) = path.split_first()?;
    while !message.is_empty() {
        let key = decode_varint(&mut message).unwrap();
        let value = decode_varint(&mut message).unwrap();
        let length = if key & 7 == 2 { value as usize } else { 0 };
        let (inner, rest) = message.split_at(length);
        message = rest;
        if key >> 3 == *field && deeper.is_empty() {
            return Some(value);
        } else if key >> 3 == *field
            && let Some(value) = on_wire(inner, deeper)
        {
            return Some(value);
        }
    }
    None
}

fn written(write: impl FnOnce(&mut Timeline<&mut Vec<u8>>)) -> Vec<TracePacket> {
    let mut bytes = Vec::new();
    let mut timeline = Timeline::new(&mut bytes);
    write(&mut timeline);
    timeline.finish().unwrap();
    Trace::decode(&bytes[..]).unwrap().packet
}

/// The numbers are those of Perfetto's `trace_packet.proto`, `ftrace_event_bundle.proto`,
/// `ftrace_event.proto`, `ftrace/sched.proto` and `ps/process_tree.proto`.
#[test]
fn a_burst_is_a_waking_and_switches_under_perfettos_field_numbers() {
    let task = Task {
        id: TaskId::recorded(1201),
        pid: 1200,
        comm: Name::from("beat"),
    };
    let burst = Burst {
        waker: 9,
        blocked: at(70),
        executed: Span::from_ns(30),
        preempted: 1,
        ..Burst::pulse(task.id, at(30))
    };
    let mut bytes = Vec::new();
    let mut schedule = Schedule::new(&mut bytes);
    schedule.hear(&Event::Tracked { at: at(1), task });
    schedule.hear(&Event::Burst(burst));
    schedule.finish().unwrap();
    for (path, value) in [
        (&[1, 2, 2, 1][..], 1201), // process_tree.threads.tid
        (&[1, 2, 2, 3], 1200),     // process_tree.threads.tgid
        (&[1, 1, 1], 0),           // ftrace_events.cpu
        (&[1, 1, 2, 1], 30),       // ftrace_events.event.timestamp
        (&[1, 1, 2, 2], 9),        // ftrace_events.event.pid
        (&[1, 1, 2, 5], 0),        // ftrace_events.event.common_flags
        (&[1, 1, 2, 20, 2], 1201), // ftrace_events.event.sched_waking.pid
        (&[1, 1, 2, 4, 2], 0),     // ftrace_events.event.sched_switch.prev_pid
        (&[1, 1, 2, 4, 4], 0),     // ftrace_events.event.sched_switch.prev_state
        (&[1, 1, 2, 4, 6], 1201),  // ftrace_events.event.sched_switch.next_pid
    ] {
        assert_eq!(on_wire(&bytes, path), Some(value), "{path:?}");
    }
    let packets = Trace::decode(&bytes[..]).unwrap().packet;
    let events = packets[1].ftrace_events.iter().flat_map(|of| &of.event);
    let times: Vec<_> = events.filter_map(|event| event.timestamp).collect();
    assert_eq!(times, [30, 30, 45, 55, 70]);
}

#[test]
fn slices_that_overlap_are_on_tracks_of_their_own() {
    let packets = written(|timeline| {
        let group = timeline.group("player");
        let mut jobs = Lanes::new(group, "jobs");
        for (from, to) in [(0, 10), (5, 12), (10, 11), (12, 20)] {
            jobs.slice(timeline, "job", (at(from), at(to)), &[]);
        }
    });
    let named = |name: &str| {
        let descriptors = packets
            .iter()
            .filter_map(|packet| packet.track_descriptor.as_ref());
        descriptors
            .filter(|track| track.name.as_deref() == Some(name))
            .count()
    };
    assert_eq!(named("jobs"), 2);
}

#[test]
fn an_output_that_fails_is_told_at_the_end() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut timeline = Timeline::new(Full);
    timeline.group("a");
    assert_eq!(
        timeline.finish().unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
}
