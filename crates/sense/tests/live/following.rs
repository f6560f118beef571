//! The tasks that are tracked beside the task asked for, their names, and their ends.

use onbeat_model::{Event, Follow, Sensor, Task};
use onbeat_sense::bpf::BpfOptions;

use crate::role::{
    Role, alive_after, bursts_of, eventually, heard, heard_to_the_end, sensor, sensors,
};

const THREADS: usize = 500;

pub(crate) fn tracked(events: &[Event]) -> Vec<Task> {
    let task = |event: &Event| match event {
        Event::Tracked { task, .. } => Some(*task),
        _ => None,
    };
    events.iter().filter_map(task).collect()
}

#[test]
fn five_hundred_threads_come_and_go_and_each_is_heard() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let mut role = Role::start();
    sensor.track(role.pid(), Follow::Threads).unwrap();
    role.ask(b't');
    role.dismiss();
    let events = heard_to_the_end(&mut sensor);

    let tasks = tracked(&events);
    assert_eq!(tasks.len(), 1 + THREADS);
    assert!(tasks.iter().all(|task| task.pid == role.pid()), "{tasks:?}");
    assert_eq!(alive_after(&events), []);
    for task in tasks {
        assert!(!bursts_of(&events, task.id).is_empty(), "{task:?}");
    }
    assert!(!events.iter().any(|e| matches!(e, Event::Lost { .. })));
}

#[test]
fn children_are_followed_if_asked_and_only_then() {
    for follow in [Follow::Alone, Follow::Threads, Follow::Children] {
        let Some(mut sensor) = sensor(BpfOptions::default()) else {
            return;
        };
        let mut role = Role::start();
        sensor.track(role.pid(), follow).unwrap();
        role.ask(b'f');
        role.dismiss();
        let events = heard_to_the_end(&mut sensor);
        let others: Vec<Task> = tracked(&events)
            .into_iter()
            .filter(|task| task.pid != role.pid())
            .collect();
        assert_eq!(alive_after(&events), []);
        match follow {
            Follow::Alone | Follow::Threads => assert_eq!(others, []),
            Follow::Children => {
                assert_eq!(others.len(), 1, "{others:?}");
                assert!(!bursts_of(&events, others[0].id).is_empty());
            }
        }
    }
}

#[test]
fn a_leader_brings_its_other_threads_and_another_thread_comes_alone() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let mut role = Role::start();
    role.ask(b'h');
    let held = role.other_threads();
    assert_eq!(held.len(), 3);

    sensor.track(held[1], Follow::Threads).unwrap();
    let alone = tracked(&heard(&mut sensor));
    assert_eq!(alone.len(), 1);
    assert_eq!((alone[0].id.tid, alone[0].pid), (held[1], role.pid()));

    sensor.track(role.pid(), Follow::Threads).unwrap();
    let mut others: Vec<u32> = tracked(&heard(&mut sensor))
        .iter()
        .map(|task| task.id.tid)
        .collect();
    others.sort_unstable();
    let mut expected = vec![role.pid(), held[0], held[2]];
    expected.sort_unstable();
    assert_eq!(others, expected);
    assert_eq!(sensor.tracked(), 4);
}

#[test]
fn a_task_keeps_its_identity_through_a_new_name_and_an_exec() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let mut role = Role::start();
    let id = role.id();
    sensor.track(role.pid(), Follow::Threads).unwrap();
    role.ask(b'n');
    role.tell(b'x');
    role.ask(b'e');
    role.dismiss();
    let events = heard_to_the_end(&mut sensor);
    let names: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            Event::Renamed { task, .. } => {
                assert_eq!(task.id, id);
                Some(task.comm.to_text())
            }
            _ => None,
        })
        .collect();
    assert_eq!(names, ["renamed", "cat"]);
    assert_eq!(tracked(&events).len(), 1);
    assert_eq!(alive_after(&events), []);
}

#[test]
fn a_flood_of_names_costs_no_other_event_and_hides_no_program() {
    for (hooks, mut sensor) in sensors(BpfOptions::default()) {
        let mut role = Role::start();
        sensor.track(role.pid(), Follow::Threads).unwrap();
        role.dismiss_after(b'N');
        let events = heard_to_the_end(&mut sensor);
        let named = |event: &Event| match event {
            Event::Renamed { task, .. } => Some(task.comm.to_text()),
            _ => None,
        };
        let names: Vec<String> = events.iter().filter_map(named).collect();
        assert!(names.len() >= 9, "{hooks:?}: {names:?}");
        assert_eq!(names.last().map(String::as_str), Some("cat"), "{hooks:?}");
        assert!(!events.iter().any(|e| matches!(e, Event::Lost { .. })));
        // Eight in a window of a tenth of a second, and the program.
        let ended = events.iter().map(Event::at).max().unwrap();
        let began = events.iter().map(Event::at).min().unwrap();
        let windows = ended.since(began).as_ns() / 100_000_000 + 2;
        assert!(
            names.len() as u64 <= 8 * windows + 1,
            "{hooks:?}: {} names in {windows} windows",
            names.len()
        );
    }
}

#[test]
fn a_thread_that_calls_exec_goes_on_under_the_leaders_number() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let mut role = Role::start();
    let leader = role.id();
    sensor.track(role.pid(), Follow::Threads).unwrap();
    role.tell(b'X');
    role.ask(b'e');
    eventually("the former leader is gone", || sensor.tracked() == 1);
    let mut events = heard(&mut sensor);
    let thread = tracked(&events)
        .iter()
        .map(|task| task.id)
        .find(|id| *id != leader)
        .expect("the thread was tracked");
    let names: Vec<(u32, String)> = tracked(&events)
        .iter()
        .map(|task| (task.id.tid, task.comm.to_text()))
        .collect();
    assert_eq!(names.last(), Some(&(leader.tid, "cat".to_owned())));
    assert!(
        events
            .iter()
            .any(|e| matches!(e, Event::Exited { task, .. } if *task == thread)),
        "{events:?}"
    );
    let account_ns = role.account_ns();
    role.ask(b'e');
    let after = heard(&mut sensor);
    let bursts = bursts_of(&after, leader);
    assert_eq!(bursts.len(), 1, "{after:?}");
    assert_eq!(bursts[0].executed.as_ns(), role.account_ns() - account_ns);
    events.extend(after);

    role.dismiss();
    events.extend(heard_to_the_end(&mut sensor));
    let last = events
        .iter()
        .rev()
        .find(|e| matches!(e, Event::Exited { .. }));
    assert_eq!(last.and_then(Event::task), Some(leader));
    assert_eq!(sensor.tracked(), 0);
}

#[test]
fn an_untracked_task_is_heard_no_more() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let mut role = Role::start();
    sensor.track(role.pid(), Follow::Threads).unwrap();
    role.ask(b'e');
    sensor.untrack(&[role.id()]).unwrap();
    role.ask(b'e');
    assert_eq!(heard(&mut sensor), []);
    assert_eq!(sensor.tracked(), 0);

    sensor.track(role.pid(), Follow::Threads).unwrap();
    role.ask(b'e');
    let events = heard(&mut sensor);
    assert_eq!(tracked(&events).len(), 1);
    assert_eq!(bursts_of(&events, role.id()).len(), 1);
}
