//! The tasks that work with a tracked thread: the threads that it wakes, and that such a thread can
//! be tracked alone.

use onbeat_model::{Event, Follow, Sensor, Span, Task};
use onbeat_sense::bpf::{BpfError, BpfOptions};

use crate::role::{Role, eventually, heard, sensor_or_skip, sensors};

fn woken_by(events: &[Event], tid: u32) -> Vec<(Task, u64)> {
    let woken = |event: &Event| match event {
        Event::Woke {
            task, wakee, count, ..
        } if task.tid == tid => Some((*wakee, *count)),
        _ => None,
    };
    events.iter().filter_map(woken).collect()
}

#[test]
fn whom_a_tracked_thread_wakes_is_told_and_can_be_tracked_alone() {
    let options = BpfOptions {
        partners: true,
        ..BpfOptions::default()
    };
    for (_, mut sensor) in sensors(options) {
        let mut role = Role::start();
        role.ask(b'p');
        let [player, partner] = role.other_threads()[..] else {
            panic!("two play");
        };
        sensor.track(player, Follow::Alone).unwrap();
        assert_eq!(sensor.tracked(), 1);

        let mut events = Vec::new();
        eventually("the partner is told", || {
            sensor.poll(Span::from_ms(20), &mut events).unwrap();
            woken_by(&events, player).iter().any(|(wakee, count)| {
                wakee.id.tid == partner && wakee.pid == role.pid() && *count > 0
            })
        });

        // Once it is tracked itself, its bursts say who woke it.
        sensor.track_partner(partner, role.id()).unwrap();
        assert_eq!(sensor.tracked(), 2);
        eventually("the partner's bursts name the player", || {
            sensor.poll(Span::from_ms(20), &mut events).unwrap();
            let mut bursts = events.iter().filter_map(|event| match event {
                Event::Burst(burst) => Some(burst),
                _ => None,
            });
            bursts.any(|burst| burst.task.tid == partner && burst.waker == player)
        });
    }
}

#[test]
fn a_thread_that_is_tracked_alone_brings_no_other_and_one_that_is_tracked_whole_does_again() {
    let mut sensor = sensor_or_skip!();
    let mut role = Role::start();
    sensor.track(role.pid(), Follow::Alone).unwrap();
    role.ask(b'h');
    assert_eq!(sensor.tracked(), 1);
    sensor.track(role.pid(), Follow::Threads).unwrap();
    assert_eq!(sensor.tracked(), 4);
    role.ask(b'h');
    assert_eq!(sensor.tracked(), 7);
    drop(heard(&mut sensor));
}

#[test]
fn a_thread_of_the_kernel_is_nobodys_partner() {
    let mut sensor = sensor_or_skip!();
    let role = Role::start();
    // kthreadd, which starts all others.
    let refused = sensor.track_partner(2, role.id()).unwrap_err();
    assert!(
        matches!(refused, BpfError::NoSuchTask { tid: 2 }),
        "{refused:?}"
    );
}
