//! The marks of programs on their own work: each mark heard, with its thread, and a flood counted.

use std::io::Write;
use std::process::{Command, Stdio};

use onbeat_model::{Event, Follow, Mark, Said, Sensor, Span};
use onbeat_sense::bpf::{BpfOptions, BpfSensor};

use crate::role::{Role, eventually, heard, heard_to_the_end, linked_program, sensor, sensors};

const JOBS: usize = 1009;
const FLOOD: u64 = 200_003;

fn marks(events: &[Event]) -> Vec<Mark> {
    let mark = |event: &Event| match event {
        Event::Marked(mark) => Some(*mark),
        _ => None,
    };
    events.iter().filter_map(mark).collect()
}

fn suppressed(events: &[Event]) -> u64 {
    let count = |event: &Event| match event {
        Event::Suppressed { count, .. } => u64::from(*count),
        _ => 0,
    };
    events.iter().map(count).sum()
}

/// The calls of libonbeat's that a role has, each in one place.
const PLACES: usize = 5;

/// A role that is tracked and listened to.
fn listened(sensor: &mut BpfSensor) -> Role {
    let role = Role::start();
    let before = sensor.probes();
    sensor.track(role.pid(), Follow::Threads).unwrap();
    eventually("a role that is listened to", || {
        assert!(sensor.deaf().is_none(), "{:?}", sensor.deaf());
        sensor.probes() == before + PLACES
    });
    role
}

/// The bytes that the calling thread has read so far.
fn read_by_this_thread() -> u64 {
    let account = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = account
        .lines()
        .find_map(|line| line.strip_prefix("rchar: "));
    line.unwrap().parse().unwrap()
}

/// The most memory that this process has had, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let value = line.and_then(|line| line.split_whitespace().next());
    value.unwrap().parse().unwrap()
}

#[test]
fn a_process_with_all_mappings_that_there_may_be_costs_the_loop_nothing() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let mut hostile = Role::start();
    // 60,000 of a leased file, by a name of 3,900 bytes: 230 MB of maps.
    hostile.ask(b'm');
    let before = read_by_this_thread();
    sensor.track(hostile.pid(), Follow::Threads).unwrap();
    let mut events = Vec::new();
    let mut role = Role::start();
    sensor.track(role.pid(), Follow::Threads).unwrap();
    eventually("both are listened to", || sensor.probes() == 2 * PLACES);
    role.ask(b'j');
    eventually("the marks of another process", || {
        sensor.poll(Span::from_ms(10), &mut events).unwrap();
        marks(&events).len() == 2 * JOBS + 2
    });
    let read = read_by_this_thread() - before;
    assert!(read < 1 << 20, "{read}");
    assert!(peak_kib() < 160 << 10, "{}", peak_kib());
}

#[test]
fn nothing_is_listened_to_in_processes_that_are_not_tracked_any_more() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let mut ending = listened(&mut sensor);
    let let_go = listened(&mut sensor);
    heard(&mut sensor);
    assert_eq!(sensor.probes(), 2 * PLACES);
    sensor.untrack(&[let_go.id()]).unwrap();
    ending.kill();
    eventually("nothing is listened to", || {
        heard(&mut sensor);
        sensor.probes() == 0
    });
}

#[test]
fn each_mark_of_a_prime_number_of_jobs_is_heard_in_order_with_its_thread_and_cpu_time() {
    for (hooks, mut sensor) in sensors(BpfOptions::default()) {
        let mut role = listened(&mut sensor);
        let id = role.id();
        role.ask(b'j');
        let account = Span::from_ns(role.account_ns());
        role.dismiss();
        let events = heard_to_the_end(&mut sensor);

        let marks = marks(&events);
        let said: Vec<Said> = marks.iter().map(|mark| mark.said).collect();
        let mut expected = vec![Said::RealTimeStarted {
            period: Span::from_ms(40),
            permille: 950,
        }];
        expected.extend([Said::JobBegan, Said::JobEnded].repeat(JOBS));
        expected.push(Said::RealTimeExited);
        assert_eq!(said, expected, "{hooks:?}");
        assert_eq!(suppressed(&events), 0);
        assert!(marks.iter().all(|mark| mark.task == id));
        assert!(marks.iter().all(|mark| mark.woke <= mark.at));
        assert!(marks.is_sorted_by_key(|mark| mark.at));
        assert!(marks.is_sorted_by_key(|mark| mark.executed));
        let last = marks.last().map(|mark| mark.executed);
        assert!(
            last > Some(Span::ZERO) && account > Span::ZERO,
            "{last:?}, {account}"
        );
    }
}

#[test]
fn a_flood_of_marks_is_counted_and_costs_no_other_event() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let mut role = listened(&mut sensor);
    role.dismiss_after(b'w');
    let events = heard_to_the_end(&mut sensor);
    let told = marks(&events);
    assert!(told.iter().all(|mark| mark.said == Said::MissedDeadline));
    assert_eq!(told.len() as u64 + suppressed(&events), FLOOD);
    assert!(!events.iter().any(|e| matches!(e, Event::Lost { .. })));
}

#[test]
fn nobody_hears_the_marks_of_a_process_that_is_not_tracked() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let mut tracked = listened(&mut sensor);
    let mut other = Role::start();
    other.ask(b'j');
    tracked.dismiss();
    assert_eq!(marks(&heard_to_the_end(&mut sensor)), []);
}

#[test]
fn a_library_loaded_later_is_listened_to() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let mut role = listened(&mut sensor);
    let before = sensor.probes();
    role.ask(b'l');
    eventually("the library is found", || {
        heard(&mut sensor);
        sensor.probes() > before
    });
    role.ask(b'L');
    let marks = marks(&heard(&mut sensor));
    assert_eq!(marks.len(), 1);
    assert_eq!(marks[0].said, Said::JobEnded);
}

#[test]
fn a_program_is_heard_from_its_first_instruction_on_though_nobody_has_looked_at_it() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let linked = linked_program();
    let mut process = Command::new("sh")
        .args(["-c", "read -r _; exec \"$0\""])
        .arg(&linked)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    sensor.track(process.id(), Follow::Threads).unwrap();
    sensor.expect(process.id(), &linked);
    assert!(sensor.deaf().is_none(), "{:?}", sensor.deaf());
    let mut gate = process.stdin.take().unwrap();
    gate.write_all(b"\n").unwrap();
    assert!(process.wait().unwrap().success());

    let events = heard_to_the_end(&mut sensor);
    let said: Vec<Said> = marks(&events).iter().map(|mark| mark.said).collect();
    let mut expected = vec![Said::RealTimeStarted {
        period: Span::from_ms(40),
        permille: 950,
    }];
    expected.extend([Said::JobEnded].repeat(JOBS));
    assert_eq!(said, expected);
    assert_eq!(suppressed(&events), 0);
}

#[test]
fn a_program_that_was_expected_is_not_heard_twice_once_it_is_looked_at() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let mut role = Role::start();
    let executable = std::fs::read_link(format!("/proc/{}/exe", role.pid())).unwrap();
    sensor.expect(role.pid(), &executable);
    let expected = sensor.probes();
    assert!(expected > 0);
    sensor.track(role.pid(), Follow::Threads).unwrap();
    assert_eq!(sensor.probes(), expected);
    role.ask(b'j');
    role.dismiss();
    assert_eq!(marks(&heard_to_the_end(&mut sensor)).len(), 2 * JOBS + 2);
}
