use crate::common::{Process, attributes, fair, live, release, reserve, scheduling, small};
use onbeat_act::attributes::{Attributes, Policy, RealTime};
use onbeat_model::{Actuator, Standing};

#[test]
fn every_policy_priority_nice_and_fork_flag_comes_back() {
    let mut actuator = live();
    let policies = [
        Policy::Other(fair(0)),
        Policy::Other(fair(7)),
        Policy::Other(fair(-13)),
        Policy::Batch(fair(3)),
        Policy::Idle(fair(19)),
        Policy::Fifo(RealTime { priority: 1 }),
        Policy::Fifo(RealTime { priority: 42 }),
        Policy::RoundRobin(RealTime { priority: 7 }),
    ];
    for policy in policies {
        for reset_on_fork in [false, true] {
            let process = Process::asleep();
            let task = process.task();
            let before = attributes(policy, reset_on_fork);
            // SCHED_IDLE keeps the nice value that a task has.
            let nice = Policy::Other(fair(before.nice().unwrap_or(0)));
            Attributes {
                policy: nice,
                ..before
            }
            .set(task.tid)
            .unwrap();
            before.set(task.tid).unwrap();
            assert_eq!(scheduling(task), before);

            reserve(&mut actuator, task, small());
            assert_eq!(scheduling(task), Attributes::reserved(small(), true));
            assert_eq!(actuator.standing(task), Standing::Held(small()));

            release(&mut actuator, task);
            assert_eq!(scheduling(task), before);
            assert_eq!(actuator.standing(task), Standing::Own);
        }
    }
}

#[test]
fn a_soft_reservation_becomes_a_ceiling_and_soft_again() {
    let mut actuator = live();
    let process = Process::asleep();
    let task = process.task();
    let before = scheduling(task);
    reserve(&mut actuator, task, small());
    for is_hard in [true, false] {
        actuator.set_hard(task, is_hard).unwrap();
        assert_eq!(
            scheduling(task),
            Attributes::reserved(small(), !is_hard),
            "{is_hard}"
        );
        assert_eq!(actuator.standing(task), Standing::Held(small()));
    }
    release(&mut actuator, task);
    assert_eq!(scheduling(task), before);
}
