use std::collections::HashSet;

use onbeat_model::{Burst, Sensor, Span, TaskId};
use onbeat_sense::bpf::BpfOptions;

use crate::role::{Role, bursts_of, eventually, heard, sensor_or_skip, sensors};

const ACTIVATIONS: usize = 101;

fn my_tid() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::gettid() as u32 }
}

#[test]
fn a_prime_number_of_activations_is_counted_and_accounted_exactly() {
    for (hooks, mut sensor) in sensors(BpfOptions::default()) {
        assert_eq!(sensor.hooks(), hooks);
        let mut role = Role::tracked_by(&mut sensor);
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
}

#[test]
fn a_thread_that_waits_for_a_disk_is_woken_by_itself() {
    for (_, mut sensor) in sensors(BpfOptions::default()) {
        let mut role = Role::tracked_by(&mut sensor);
        eventually("it waits for the disk", || {
            role.ask(b'd');
            let bursts = bursts_of(&heard(&mut sensor), role.id());
            let by_itself = bursts.iter().filter(|b| b.waker == role.pid());
            by_itself.count() >= 5
        });
    }
}

#[test]
fn the_executed_time_of_a_reused_number_is_not_told() {
    let mut sensor = sensor_or_skip!();
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
