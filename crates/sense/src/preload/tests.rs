use super::*;

fn record(woke_ns: u64, blocked_ns: u64, executed_ns: u64) -> PreloadRecord {
    PreloadRecord {
        pid: 1,
        tid: 1,
        woke_ns,
        blocked_ns,
        executed_ns,
        preempted: 3,
        waited_us: u32::MAX,
        comm: "x".into(),
    }
}

#[test]
fn a_burst_cannot_end_before_it_began_nor_in_the_future_nor_run_longer_than_it_lasted() {
    let now = Instant::from_ns(100);
    assert_eq!(burst_of(&record(20, 10, 0), now), None);
    assert_eq!(burst_of(&record(20, 101, 0), now), None);
    let burst = burst_of(&record(20, 50, u64::MAX), now).unwrap();
    assert_eq!(burst.executed, Span::from_ns(30));
    assert_eq!((burst.preempted, burst.first_ran), (3, burst.blocked));
}

#[test]
fn nobody_is_believed_who_tells_of_another_process() {
    let sensor = PreloadSensor::new().unwrap();
    let stranger = PreloadRecord {
        tid: std::process::id(),
        ..record(1, 2, 1)
    };
    assert_eq!(sensor.believed(&stranger), None);
    let unknown = PreloadRecord {
        tid: u32::MAX,
        ..stranger
    };
    assert_eq!(sensor.believed(&unknown), None);
}

#[test]
fn a_process_descends_from_itself_and_from_its_parent() {
    let me = std::process::id();
    assert!(descends(me, me));
    assert!(descends(me, identity::parent(me).unwrap()));
    assert!(!descends(identity::parent(me).unwrap(), me));
}
