use std::time::Duration;

use onbeat_act::attributes::Attributes;
use onbeat_model::{Actuator, Reservation, Span, Standing};

use crate::common::{Bandwidth, Live, Process, give_up, release, reserve, scheduling};

/// Enough of one twentieth of a CPU each to fill the machine's account twice, if it leaked.
fn twentieths(cpus: u32) -> u32 {
    2 * 20 * cpus
}

fn twentieth() -> Reservation {
    Reservation::implicit(Span::from_ms(1), Span::from_ms(20)).unwrap()
}

#[test]
fn tasks_that_are_given_back_asleep_leave_room_for_others() {
    let mut actuator = Live::with(Bandwidth::all());
    forget_earlier_leaks();
    for _ in 0..twentieths(actuator.capacity().cpus) {
        let process = Process::asleep();
        let task = process.task();
        reserve(&mut actuator, task, twentieth());
        release(&mut actuator, task);
    }
    assert_eq!(actuator.recounts(), 0);
}

#[test]
fn bandwidth_that_leaked_by_others_doing_is_found_again() {
    let mut actuator = Live::with(Bandwidth::all());
    leak_until_full();
    let process = Process::asleep();
    let large = Reservation::implicit(Span::from_ms(16), Span::from_ms(20)).unwrap();
    reserve(&mut actuator, process.task(), large);
    assert_eq!(actuator.standing(process.task()), Standing::Held(large));
    give_up(&mut actuator, process.task());
}

/// The leaks of other programs until now are not this test's concern.
fn forget_earlier_leaks() {
    let limit = "/proc/sys/kernel/sched_rt_runtime_us";
    std::fs::write(limit, std::fs::read(limit).unwrap()).unwrap();
}

/// Sets and unsets reservations as no program should, until the kernel's account is full of what is
/// not there; a kernel that does not leak is left as it is.
fn leak_until_full() {
    let half = Reservation::implicit(Span::from_ms(10), Span::from_ms(20)).unwrap();
    let half = Attributes::reserved(half, false);
    for _ in 0..64 {
        let process = Process::asleep();
        let before = scheduling(process.task());
        // The kernel dequeues a task that has gone to sleep a little late.
        std::thread::sleep(Duration::from_millis(20));
        if half.set(process.task().tid).is_err() {
            return;
        }
        before.set(process.task().tid).unwrap();
    }
}
