//! Every activation is one burst, and CPU time adds up to the scheduler's own account.

use std::collections::HashSet;

use onbeat_model::{Burst, Event, Follow, Sensor, Span, TaskId};
use onbeat_sense::bpf::{BpfOptions, Hooks};

use crate::role::{Role, bursts_of, eventually, heard, sensor, sensors};

const ACTIVATIONS: usize = 101;

fn my_tid() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::gettid() as u32 }
}

fn counts_a_prime_number_of_activations(hooks: Hooks) {
    let options = BpfOptions {
        hooks,
        ..BpfOptions::default()
    };
    let Some(mut sensor) = sensor(options) else {
        return;
    };
    assert_eq!(sensor.hooks(), hooks);
    let mut role = Role::start();
    sensor.track(role.pid(), Follow::Threads).unwrap();
    let account_ns = role.account_ns();
    for _ in 0..ACTIVATIONS {
        role.ask(b'e');
    }
    let executed = Span::from_ns(role.account_ns() - account_ns);
    assert_eq!(
        sensor.executed(role.id()),
        Some(Span::from_ns(role.account_ns()))
    );

    let events = heard(&mut sensor);
    let bursts = bursts_of(&events, role.id());
    assert_eq!(bursts.len(), ACTIVATIONS);
    assert_eq!(events.len(), 1 + ACTIVATIONS, "{events:?}");
    assert_eq!(bursts.iter().map(|b| b.executed).sum::<Span>(), executed);
    for pair in bursts.windows(2) {
        assert!(pair[0].blocked <= pair[1].woke, "{pair:?}");
    }
    let is_in_order = |b: &Burst| b.woke <= b.first_ran && b.first_ran <= b.blocked;
    assert!(bursts.iter().all(is_in_order), "{bursts:?}");
    assert!(bursts.iter().all(|b| !b.exhausted), "{bursts:?}");
    // The one who gave the commands; a wakeup that was invisible has no waker.
    let wakers: HashSet<u32> = bursts.iter().map(|b| b.waker).collect();
    assert!(wakers.contains(&my_tid()), "{wakers:?}");
    assert!(
        wakers.is_subset(&HashSet::from([0, my_tid()])),
        "{wakers:?}"
    );
}

#[test]
fn a_prime_number_of_activations_is_counted_and_accounted_exactly() {
    counts_a_prime_number_of_activations(Hooks::Btf);
}

#[test]
fn the_fallback_on_raw_tracepoints_counts_as_exactly() {
    counts_a_prime_number_of_activations(Hooks::Raw);
}

#[test]
fn a_thread_that_waits_for_a_disk_is_woken_by_itself() {
    for (_, mut sensor) in sensors(BpfOptions::default()) {
        let mut role = Role::start();
        sensor.track(role.pid(), Follow::Threads).unwrap();
        eventually("it waits for the disk", || {
            role.ask(b'd');
            let bursts = bursts_of(&heard(&mut sensor), role.id());
            let by_itself = bursts.iter().filter(|b| b.waker == role.pid());
            by_itself.count() >= 5
        });
    }
}

#[test]
fn two_threads_that_play_ping_pong_wake_each_other() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let mut role = Role::start();
    sensor.track(role.pid(), Follow::Threads).unwrap();
    role.ask(b'p');
    let players = role.other_threads();
    assert_eq!(players.len(), 2);

    let mut events = Vec::new();
    let bursts_woken_by_another = |events: &[Event], player: u32| {
        let burst = |event: &Event| match event {
            Event::Burst(b) if b.task.tid == player && b.waker != 0 => Some(*b),
            _ => None,
        };
        events.iter().filter_map(burst).collect::<Vec<_>>()
    };
    for player in &players {
        eventually("a player is woken 23 times", || {
            sensor.poll(Span::from_ms(1), &mut events).unwrap();
            bursts_woken_by_another(&events, *player).len() >= 23
        });
    }
    for (player, partner) in [(players[0], players[1]), (players[1], players[0])] {
        for burst in bursts_woken_by_another(&events, player) {
            // The first thread starts both and throws the ball in.
            assert!([partner, role.pid()].contains(&burst.waker), "{burst:?}");
        }
        let by_partner = bursts_woken_by_another(&events, player)
            .iter()
            .filter(|b| b.waker == partner)
            .count();
        assert!(by_partner >= 21, "{by_partner}");
    }
}

#[test]
fn each_wakeup_is_reported_when_asked_for() {
    let options = BpfOptions {
        raw_wakeups: true,
        ..BpfOptions::default()
    };
    let Some(mut sensor) = sensor(options) else {
        return;
    };
    let mut role = Role::start();
    sensor.track(role.pid(), Follow::Threads).unwrap();
    for _ in 0..23 {
        role.ask(b'e');
    }
    let events = heard(&mut sensor);
    let wakeups = events.iter().filter_map(|event| match event {
        Event::Wakeup { task, waker, at } => Some((*task, *waker, *at)),
        _ => None,
    });
    let bursts = bursts_of(&events, role.id());
    let expected = bursts.iter().map(|b| (role.id(), my_tid(), b.woke));
    assert_eq!(wakeups.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert_eq!(bursts.len(), 23);
}

#[test]
fn the_executed_time_of_a_reused_number_is_not_told() {
    let Some(mut sensor) = sensor(BpfOptions::default()) else {
        return;
    };
    let mut role = Role::start();
    let id = role.id();
    let former = TaskId {
        started_ticks: id.started_ticks - 1,
        ..id
    };
    assert_eq!(sensor.executed(former), None);
    assert_eq!(sensor.executed(id), Some(Span::from_ns(role.account_ns())));
    role.dismiss();
    assert_eq!(sensor.executed(id), None);
}
