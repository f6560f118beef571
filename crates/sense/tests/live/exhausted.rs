use onbeat_model::{Event, Flow, Sensor, Span};
use onbeat_sense::bpf::BpfOptions;

use crate::role::{Role, bursts_of, eventually, heard_to_the_end, sensor_or_skip, sensors};

/// `struct sched_attr` of linux/sched/types.h, in its first version.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

fn reserve_too_little(tid: u32) {
    let attributes = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: libc::SCHED_DEADLINE as u32,
        flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        nice: 0,
        priority: 0,
        runtime_ns: 1_000_000,
        deadline_ns: 20_000_000,
        period_ns: 20_000_000,
    };
    eventually("a small reservation is admitted", || {
        // SAFETY: the attributes are of the size they say, and outlive the call.
        let set = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0) };
        let error = std::io::Error::last_os_error();
        assert!(
            set == 0 || error.raw_os_error() == Some(libc::EBUSY),
            "{error}"
        );
        set == 0
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
