use std::process::{Command, Stdio};
use std::sync::mpsc;

use onbeat_act::attributes::Attributes;
use onbeat_act::restore::{Outcome, restore};
use onbeat_act::task;
use onbeat_model::{Actuator, Reservation, Span, Standing, TaskId};

use crate::common::{
    Bandwidth, Process, actuator, eventually, example, live, release, reserve, scheduling, small,
};

#[test]
fn five_hundred_threads_are_reserved_and_given_back() {
    let mut actuator = live();
    let least = Reservation::implicit(Span::from_us(10), Span::from_ms(100)).unwrap();
    let (started, starts) = mpsc::channel();
    std::thread::scope(|scope| {
        let ends: Vec<_> = (0..500)
            .map(|_| {
                let (end, wait) = mpsc::channel::<()>();
                let started = started.clone();
                scope.spawn(move || {
                    started.send(task::own().unwrap()).unwrap();
                    wait.recv()
                });
                end
            })
            .collect();
        let threads: Vec<_> = starts.iter().take(500).collect();
        let before: Vec<_> = threads.iter().map(|&thread| scheduling(thread)).collect();
        for &thread in &threads {
            reserve(&mut actuator, thread, least);
        }
        for &thread in &threads {
            assert_eq!(actuator.standing(thread), Standing::Held(least));
        }
        assert_eq!(actuator.release_all(Span::from_secs(5)), []);
        let after: Vec<_> = threads.iter().map(|&thread| scheduling(thread)).collect();
        assert_eq!(after, before);
        drop(ends);
    });
}

#[test]
fn a_program_that_becomes_another_keeps_its_reservation_and_gets_its_own_back() {
    let mut actuator = live();
    let script = "read _; exec sleep 1000";
    let mut program = Command::new("sh");
    let mut process = Process::start(program.args(["-c", script]).stdin(Stdio::piped()));
    let task = process.task();
    let before = scheduling(task);
    reserve(&mut actuator, task, small());
    process.close_input();
    let comm = format!("/proc/{}/comm", task.tid);
    eventually("another program", || {
        (std::fs::read_to_string(&comm).unwrap() == "sleep\n").then_some(())
    });
    assert_eq!(actuator.standing(task), Standing::Held(small()));
    release(&mut actuator, task);
    assert_eq!(scheduling(task), before);
}

/// A program of two threads, the second of which is to execute another; and that thread.
pub(crate) fn about_to_become() -> (Process, TaskId) {
    let mut program = Command::new(example("become"));
    let (process, output) = Process::talking(&mut program);
    let second = task::identify(output.trim().parse().unwrap()).unwrap();
    (process, second)
}

pub(crate) fn become_it(process: &mut Process) {
    process.close_input();
    let comm = format!("/proc/{}/comm", process.pid());
    eventually("another program", || {
        (std::fs::read_to_string(&comm).unwrap() == "sleep\n").then_some(())
    });
}

#[test]
fn a_thread_that_becomes_another_program_does_not_take_its_reservation_along() {
    let mut actuator = live();
    for leader_is_held in [false, true] {
        let (mut process, second) = about_to_become();
        let leader = process.task();
        let before = scheduling(leader);
        reserve(&mut actuator, second, small());
        if leader_is_held {
            let other = Reservation::implicit(Span::from_ms(2), Span::from_ms(100)).unwrap();
            reserve(&mut actuator, leader, other);
        }
        become_it(&mut process);
        assert_eq!(process.task(), leader);
        assert_eq!(scheduling(leader), Attributes::reserved(small(), true));
        assert_eq!(actuator.standing(second), Standing::Gone);
        assert_eq!(scheduling(leader), before);
        assert_eq!(actuator.standing(leader), Standing::Own);
    }
}

#[test]
fn a_thread_that_became_another_program_is_found_after_a_crash() {
    let _bandwidth = Bandwidth::a_little();
    let (directory, mut actuator) = actuator();
    let (mut process, second) = about_to_become();
    let leader = process.task();
    let before = scheduling(leader);
    reserve(&mut actuator, second, small());
    become_it(&mut process);
    let report = restore(directory.path(), true).unwrap();
    assert_eq!(report.tasks, [(second, Outcome::Restored)]);
    assert_eq!(scheduling(leader), before);
}
