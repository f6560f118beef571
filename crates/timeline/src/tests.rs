use super::*;
use packet::Trace;

fn at(ns: u64) -> Instant {
    Instant::from_ns(ns)
}

fn written(write: impl FnOnce(&mut Timeline<&mut Vec<u8>>)) -> Vec<TracePacket> {
    let mut bytes = Vec::new();
    let mut timeline = Timeline::new(&mut bytes);
    write(&mut timeline);
    timeline.finish().unwrap();
    Trace::decode(&bytes[..]).unwrap().packet
}

#[test]
fn what_is_written_is_read_back() {
    let packets = written(|timeline| {
        let group = timeline.group("CPUs");
        let cpu = timeline.track(group, "CPU 0");
        let details = [("khz", Detail::Number(7)), ("why", Detail::Words("late"))];
        timeline.slice(cpu, "player", (at(5), at(9)), &details);
        let budget = timeline.counter(group, "budget", Unit::Time);
        timeline.count(budget, at(6), -3);
    });
    assert_eq!(packets.len(), 6);
    assert!(
        packets
            .iter()
            .all(|packet| packet.trusted_packet_sequence_id == Some(SEQUENCE))
    );
    let cpu = packets[1].track_descriptor.as_ref().unwrap();
    let group = packets[0].track_descriptor.as_ref().unwrap();
    assert_eq!(
        (cpu.parent_uuid, cpu.name.as_deref()),
        (group.uuid, Some("CPU 0"))
    );
    let begin = packets[2].track_event.as_ref().unwrap();
    assert_eq!(
        (packets[2].timestamp, begin.track_uuid),
        (Some(5), cpu.uuid)
    );
    assert_eq!(begin.debug_annotations.len(), 2);
    assert_eq!(begin.r#type(), Type::SliceBegin);
    assert_eq!(packets[3].timestamp, Some(9));
    let count = packets[5].track_event.as_ref().unwrap();
    assert_eq!(
        (count.r#type(), count.counter_value),
        (Type::Counter, Some(-3))
    );
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
