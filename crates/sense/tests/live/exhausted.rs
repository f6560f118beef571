use std::process::Command;

use onbeat_model::{Event, Flow, Sensor, Span};
use onbeat_sense::bpf::BpfOptions;

use crate::role::{Role, bursts_of, eventually, heard_to_the_end, sensor_or_skip, sensors};

fn reserve_too_little(tid: u32) {
    eventually("a small reservation is admitted", || {
        let mut chrt = Command::new("chrt");
        chrt.args([
            "--deadline",
            "--reset-on-fork",
            "--sched-runtime",
            "1000000",
        ])
        .args(["--sched-period", "20000000", "--pid", "0"])
        .arg(tid.to_string());
        chrt.status().expect("chrt is there").success()
    });
}

#[test]
fn a_spinning_task_with_too_small_a_reservation_is_reported_exhausted() {
    let mut sensor = sensor_or_skip!();
    let mut role = Role::tracked_by(&mut sensor);
    let id = role.id();
    role.tell(b's');
    reserve_too_little(role.pid());

    let mut events = Vec::new();
    eventually("the budget runs out", || {
        let flow = sensor.poll(Span::from_ms(100), &mut events).unwrap();
        assert_eq!(flow, Flow::Open);
        events
            .iter()
            .any(|e| matches!(e, Event::Exhausted { task, .. } if *task == id))
    });
    role.kill();
    events.extend(heard_to_the_end(&mut sensor));
    let bursts = bursts_of(&events, id);
    let last = bursts.last().expect("it ran, and was killed");
    assert!(last.exhausted && last.preempted > 0, "{last:?}");
}

#[test]
fn a_budget_that_a_task_gives_up_by_sched_yield_is_told() {
    for (_, mut sensor) in sensors(BpfOptions::default()) {
        let mut role = Role::tracked_by(&mut sensor);
        let id = role.id();
        reserve_too_little(role.pid());
        role.tell(b'y');
        let mut events = Vec::new();
        eventually("it yields", || {
            sensor.poll(Span::from_ms(100), &mut events).unwrap();
            let mut told = events.iter();
            told.any(|e| matches!(e, Event::Yielded { task, .. } if *task == id))
        });
        role.kill();
    }
}
