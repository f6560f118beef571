//! Priorities below reservations: neither outlives its giver.

use onbeat_act::attributes::{Attributes, Fair, Policy, RealTime};
use onbeat_act::restore::StateFile;
use onbeat_act::{Effect, Given, Priorities, Priority};
use onbeat_model::Refusal;

use crate::common::{
    Bandwidth, Process, actuator, needs_root, release, reserve, scheduling, small,
};

const DEFAULT: Attributes = Attributes {
    policy: Policy::Other(Fair {
        nice: 0,
        slice_ns: 0,
    }),
    reset_on_fork: false,
};

/// As root asked for its own task.
fn real_time(priority: u32) -> Given {
    Given {
        priority: Priority::RealTime(priority),
        payer: 0,
        owner: 0,
    }
}

#[test]
fn a_priority_below_a_reservation_is_taken_back_once_that_is_gone() {
    needs_root!();
    let _bandwidth = Bandwidth::a_little();
    let (directory, mut actuator) = actuator();
    let mut priorities = Priorities::new(StateFile::create(directory.path()).unwrap());
    let process = Process::asleep();
    let task = process.task();
    DEFAULT.set(task.tid).unwrap();
    assert_eq!(priorities.raise(task, real_time(5)), Ok(Effect::InForce));
    reserve(&mut actuator, task, small());
    let answer = priorities.put_back(task);
    assert!(
        matches!(answer, Err(Refusal::Settling { .. })),
        "{answer:?}"
    );
    // As it comes when a throttled task's release had to wait.
    release(&mut actuator, task);
    let round_robin = Policy::RoundRobin(RealTime { priority: 5 });
    assert_eq!(scheduling(task).policy, round_robin);
    assert_eq!(priorities.put_back(task), Ok(()));
    assert_eq!(scheduling(task), DEFAULT);
    assert_eq!(priorities.tasks().count(), 0);
    drop((actuator, priorities));
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_nice_level_that_somebody_gave_below_a_priority_stays() {
    needs_root!();
    let directory = tempfile::tempdir().unwrap();
    let mut priorities = Priorities::new(StateFile::create(directory.path()).unwrap());
    let process = Process::asleep();
    let task = process.task();
    DEFAULT.set(task.tid).unwrap();
    assert_eq!(priorities.raise(task, real_time(5)), Ok(Effect::InForce));
    // SAFETY: setpriority takes numbers and touches no memory.
    let reniced = unsafe { libc::setpriority(libc::PRIO_PROCESS, task.tid, -5) };
    assert_eq!(reniced, 0);
    assert_eq!(priorities.put_back(task), Ok(()));
    assert_eq!(scheduling(task), DEFAULT.with_nice(-5));
}
