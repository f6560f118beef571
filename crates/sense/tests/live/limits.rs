use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use onbeat_model::{Event, Follow, Origin, Sensor, Span};
use onbeat_sense::bpf::{BpfError, BpfOptions, BpfSensor};

use crate::role::{Role, bursts_of, eventually, heard, sensor_or_skip, set_round_robin};

fn lost(events: &[Event]) -> u64 {
    let count = |event: &Event| match event {
        Event::Lost { count, .. } => Some(*count),
        _ => None,
    };
    events.iter().filter_map(count).sum()
}

#[test]
fn what_finds_no_room_in_the_buffer_is_counted() {
    let mut sensor = sensor_or_skip!(buffer_bytes: 1);
    let mut role = Role::tracked_by(&mut sensor);
    for _ in 0..101 {
        role.ask(b'e');
    }
    let events = heard(&mut sensor);
    let bursts = bursts_of(&events, role.id()).len() as u64;
    assert!(lost(&events) > 0);
    // Waits for a CPU, which depend on what else the machine does, may be lost, too.
    assert!((101..=2 * 101).contains(&(bursts + lost(&events))));

    role.ask(b'e');
    let events = heard(&mut sensor);
    assert_eq!(bursts_of(&events, role.id()).len(), 1);
    assert_eq!(lost(&events), 0);
}

/// It goes first, as the loop does: else it would lose some on a machine that has much to do. One
/// that stalls may have it lose some all the same, and try again.
#[test]
fn a_reader_that_means_to_sleep_on_is_woken_before_its_buffer_is_full() {
    const RECORDS: u64 = 256;
    let mut sensor = sensor_or_skip!(buffer_bytes: RECORDS as u32 * 64);
    let mut role = Role::tracked_by(&mut sensor);
    heard(&mut sensor);
    set_round_robin(0);
    eventually("ten buffers are heard without a loss", || {
        let mut events = Vec::new();
        let waker = sensor.waker();
        thread::scope(|scope| {
            scope.spawn(|| {
                (0..RECORDS * 10).for_each(|_| role.ask(b'e'));
                waker.wake();
            });
            sensor.poll(Span::from_secs(3600), &mut events).unwrap();
        });
        events.append(&mut heard(&mut sensor));
        let bursts = bursts_of(&events, role.id()).len() as u64;
        let is_whole = lost(&events) == 0;
        // Among the lost may be waits for a CPU, which depend on what else the machine does.
        assert!(bursts == RECORDS * 10 || (!is_whole && bursts + lost(&events) >= RECORDS * 10));
        is_whole
    });
}

#[test]
fn where_bursts_are_bounded_those_of_a_flood_are_told_several_as_one_and_no_time_is_lost() {
    const ASKED: u64 = 3000;
    let mut sensor = sensor_or_skip!(bound_bursts: true);
    let mut role = Role::tracked_by(&mut sensor);
    heard(&mut sensor);
    eventually("a flood that takes a few windows", || {
        let before = sensor.executed(role.id()).unwrap();
        let began = std::time::Instant::now();
        (0..ASKED).for_each(|_| role.ask(b'e'));
        let windows = began.elapsed().as_millis() as u64 / 100 + 2;
        // A burst that was not told by itself is told with a burst in another window.
        thread::sleep(std::time::Duration::from_millis(200));
        role.ask(b'e');
        let after = sensor.executed(role.id()).unwrap();
        let events = heard(&mut sensor);
        assert_eq!(lost(&events), 0);
        let bursts = bursts_of(&events, role.id());
        let (_, flood) = bursts.split_last().unwrap();
        let told = flood.len() as u64;
        assert!(told <= 400 * windows, "{told} in {windows} windows");
        assert!(bursts.is_sorted_by(|one, next| one.blocked <= next.woke));
        let sum: Span = bursts.iter().map(|burst| burst.executed).sum();
        assert_eq!(sum, after - before);
        told < ASKED
    });
}

#[test]
fn where_bursts_are_bounded_a_user_has_so_many_threads_tracked_in_a_window_and_root_all() {
    const THREADS: u64 = 1500;
    let mut sensor = sensor_or_skip!(bound_bursts: true);
    let script = format!(
        "read go; i=0; while [ $i -lt {THREADS} ]; do (:); i=$((i+1)); done; echo over; read end"
    );
    for uid in [0, 9] {
        let mut storm = Command::new("sh");
        storm.args(["-c", &script]).uid(uid);
        let mut storm = storm
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        sensor.track(storm.id(), Follow::Children).unwrap();
        let began = Instant::now();
        writeln!(storm.stdin.as_ref().unwrap(), "go").unwrap();
        let mut told = [0; 5];
        storm
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut told)
            .unwrap();
        let windows = began.elapsed().as_millis() as u64 / 500 + 2;
        let events = heard(&mut sensor);
        let tracked = events
            .iter()
            .filter(|event| matches!(event, Event::Tracked { .. }));
        let children = tracked.count() as u64 - 1;
        assert_eq!(lost(&events), 0);
        assert!(
            uid == 0 || children <= 100 * windows,
            "{children} in {windows} windows"
        );
        // A machine that stalls takes many windows.
        assert_eq!(sensor.take_missed_starts(), children < THREADS);
        assert!(!sensor.take_missed_starts());
        assert!(uid != 0 || children == THREADS);
        drop(storm.stdin.take());
        storm.wait().unwrap();
        heard(&mut sensor);
    }
}

#[test]
fn a_child_is_told_with_its_parent_and_its_owner_until_the_next_poll() {
    let mut sensor = sensor_or_skip!();
    let mut shell = Command::new("sh");
    shell.args(["-c", "read go; (read go); :"]).uid(9);
    let mut shell = shell.stdin(Stdio::piped()).spawn().unwrap();
    sensor.track(shell.id(), Follow::Children).unwrap();
    heard(&mut sensor);
    writeln!(shell.stdin.as_ref().unwrap(), "go").unwrap();
    let mut child = None;
    eventually("the child", || {
        let mut events = Vec::new();
        sensor.poll(Span::from_ms(100), &mut events).unwrap();
        child = events.iter().find_map(|event| match event {
            Event::Tracked { task, .. } => Some(task.id),
            _ => None,
        });
        child.is_some()
    });
    let child = child.unwrap();
    let (parent, uid) = (shell.id(), Some(9));
    assert_eq!(sensor.origin(child), Some(Origin { parent, uid }));
    drop(shell.stdin.take());
    shell.wait().unwrap();
    heard(&mut sensor);
    assert_eq!(sensor.origin(child), None);
}

#[test]
fn a_full_table_is_an_error_that_says_whom_it_hit_and_later_threads_are_counted_as_lost() {
    let mut sensor = sensor_or_skip!(most_tasks: 2);
    let mut role = Role::start();
    role.ask(b'h');
    let error = sensor.track(role.pid(), Follow::Threads).unwrap_err();
    assert!(matches!(error, BpfError::Full { most: 2, .. }), "{error:?}");
    assert!(error.to_string().contains(&role.pid().to_string()));
    assert_eq!(sensor.tracked(), 2);
    role.ask(b'h');
    assert_eq!(lost(&heard(&mut sensor)), 3);
}

#[test]
fn without_privilege_the_error_says_what_to_do() {
    drop(sensor_or_skip!());
    // The bare system call changes this one thread; libc's would change all of the test's.
    let refused = thread::spawn(|| {
        let nobody = 65534;
        // SAFETY: three numbers; the thread ends right after it has tried.
        let changed = unsafe { libc::syscall(libc::SYS_setresuid, nobody, nobody, nobody) };
        assert_eq!(changed, 0);
        BpfSensor::new(BpfOptions::default())
            .map(|_| ())
            .unwrap_err()
    });
    let refused = refused.join().unwrap();
    assert!(matches!(refused, BpfError::NoPrivilege), "{refused:?}");
    assert!(refused.to_string().contains("sudo"), "{refused}");
}
