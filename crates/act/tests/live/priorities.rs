use onbeat_act::attributes::{Attributes, Policy, RealTime};
use onbeat_act::restore::StateFile;
use onbeat_act::{Effect, Given, Priorities, Priority};
use onbeat_model::Refusal;

use crate::common::{Bandwidth, Process, actuator, release, reserve, scheduling, set_nice, small};
use crate::many::{about_to_become, become_it};

const DEFAULT: Attributes = Attributes::ordinary(0, false);

fn priorities() -> (tempfile::TempDir, Priorities) {
    let directory = tempfile::tempdir().unwrap();
    let state_file = StateFile::create(directory.path()).unwrap();
    (directory, Priorities::new(state_file))
}

fn real_time(priority: u32) -> Given {
    given(Priority::RealTime(priority))
}

/// As root asked for its own task.
fn given(priority: Priority) -> Given {
    Given {
        priority,
        payer: 0,
        owner: 0,
    }
}

#[test]
fn a_priority_below_a_reservation_is_taken_back_once_that_is_gone() {
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
    let (_directory, mut priorities) = priorities();
    let process = Process::asleep();
    let task = process.task();
    DEFAULT.set(task.tid).unwrap();
    assert_eq!(priorities.raise(task, real_time(5)), Ok(Effect::InForce));
    set_nice(task, -5);
    assert_eq!(priorities.put_back(task), Ok(()));
    assert_eq!(scheduling(task), DEFAULT.with_nice(-5));
}

#[test]
fn a_thread_that_becomes_another_program_does_not_take_its_priority_along() {
    let (_directory, mut priorities) = priorities();
    let high = given(Priority::Nice(-15));
    for (of_leader, of_second) in [
        (None, high),
        (None, real_time(5)),
        (Some(high), high),
        (Some(real_time(4)), high),
    ] {
        let (mut process, second) = about_to_become();
        let leader = process.task();
        for task in [leader, second] {
            DEFAULT.set(task.tid).unwrap();
        }
        let first = of_leader.map(|given| (leader, given));
        for (task, given) in first.into_iter().chain([(second, of_second)]) {
            assert_eq!(priorities.raise(task, given), Ok(Effect::InForce));
        }
        become_it(&mut process);
        assert_ne!(scheduling(leader), DEFAULT);
        assert_eq!(priorities.put_back(second), Ok(()));
        assert_eq!(priorities.put_back(leader), Ok(()));
        assert_eq!(scheduling(leader), DEFAULT);
        assert_eq!(priorities.tasks().count(), 0);
    }
}

#[test]
fn a_thread_that_ends_takes_no_priority_of_its_leader_along() {
    let (_directory, mut priorities) = priorities();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let _ = tell.send(onbeat_act::task::own().unwrap());
        let _ = ended.recv();
    });
    let second = told.recv().unwrap();
    let leader = onbeat_act::task::leader(second).unwrap();
    let high = given(Priority::Nice(-1));
    for task in [leader, second] {
        assert_eq!(priorities.raise(task, high), Ok(Effect::InForce));
    }
    drop(end);
    thread.join().unwrap();
    while onbeat_act::task::is_alive(second) {
        std::thread::yield_now();
    }
    priorities.forget(second);
    assert_eq!(scheduling(leader).nice(), Some(-1));
}
