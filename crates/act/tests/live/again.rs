//! A task that was given back can be reserved again: as soon as the kernel has let go of it, and
//! without harm.

use std::time::Duration;

use onbeat_act::attributes::Attributes;
use onbeat_kernel::clock;
use onbeat_model::{Actuator, Refusal, Reservation, Span, Standing};

use crate::common::{Process, eventually, live, release, reserve, scheduling};

#[test]
fn a_longer_period_that_was_left_a_moment_ago_still_counts() {
    let mut actuator = live();
    let process = Process::asleep();
    let task = process.task();
    let slow = Reservation::implicit(Span::from_ms(20), Span::from_secs(2)).unwrap();
    let fast = Reservation::implicit(Span::from_us(10), Span::from_ms(1)).unwrap();
    reserve(&mut actuator, task, slow);
    let left = clock::now();
    reserve(&mut actuator, task, fast);
    release(&mut actuator, task);
    let released = clock::now();
    match actuator.reserve(task, fast) {
        Err(Refusal::Settling { until }) => {
            assert!(until.since(left) >= slow.period());
            assert!(until.since(released) <= slow.period() + Span::from_ms(10));
        }
        Ok(()) => assert!(clock::now().since(left) >= slow.period()),
        Err(refusal) => panic!("{refusal}"),
    }
}

fn executed_ns(process: &Process) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/schedstat", process.pid())).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_task_that_always_runs_out_survives_being_given_back_and_reserved_again() {
    let mut actuator = live();
    let process = Process::busy();
    let task = process.task();
    let before = scheduling(task);
    let tight = Reservation::implicit(Span::from_us(200), Span::from_ms(20)).unwrap();
    for _ in 0..20 {
        reserve(&mut actuator, task, tight);
        // Through several periods of running out.
        let enough = executed_ns(&process) + 3 * tight.runtime().as_ns();
        eventually("a task that runs", || {
            (executed_ns(&process) >= enough).then_some(())
        });
        release(&mut actuator, task);
        assert_eq!(scheduling(task), before);
    }
}

#[test]
fn a_task_that_somebody_left_throttled_for_good_is_freed() {
    let mut actuator = live();
    let process = Process::busy();
    let task = process.task();
    let before = scheduling(task);
    let tight = Reservation::implicit(Span::from_us(200), Span::from_ms(20)).unwrap();
    let set = Attributes::reserved(tight, false);
    // Out of and into the policy, as fast as can be: at some point, the kernel loses the timer.
    for _ in 0..20 {
        set.set(task.tid).unwrap();
        std::thread::sleep(Duration::from_millis(5));
        before.set(task.tid).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    reserve(&mut actuator, task, tight);
    for _ in 0..3 {
        let executed = executed_ns(&process);
        eventually("a task that runs", || {
            assert_eq!(actuator.standing(task), Standing::Held(tight));
            (executed_ns(&process) > executed).then_some(())
        });
    }
    release(&mut actuator, task);
    assert_eq!(scheduling(task), before);
}
