use onbeat_model::{Event, Follow, Sensor, Task};
use onbeat_sense::bpf::BpfOptions;

use crate::role::{Role, heard, heard_to_the_end, sensor_or_skip, sensors};

pub(crate) fn tracked(events: &[Event]) -> Vec<Task> {
    let task = |event: &Event| match event {
        Event::Tracked { task, .. } => Some(*task),
        _ => None,
    };
    events.iter().filter_map(task).collect()
}

#[test]
fn a_leader_brings_its_other_threads_and_another_thread_comes_alone() {
    let mut sensor = sensor_or_skip!();
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
fn a_flood_of_names_costs_no_other_event_and_hides_no_program() {
    for (hooks, mut sensor) in sensors(BpfOptions::default()) {
        let mut role = Role::tracked_by(&mut sensor);
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
