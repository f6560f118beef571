use std::process::Command;

use onbeat_act::DeadlineActuator;
use onbeat_act::allowed_cpus;
use onbeat_act::attributes::{Attributes, Policy, RealTime, kept_nice};
use onbeat_model::{Actuator, Refusal, Reservation, Span, Standing};

use crate::common::{
    Process, attributes, eventually, live, release, reserve, scheduling, set_nice, small,
};

fn fifo() -> Attributes {
    attributes(Policy::Fifo(RealTime { priority: 3 }), false)
}

#[test]
fn an_administrators_change_is_noticed_and_wins() {
    let mut actuator = live();
    let other = Reservation::implicit(Span::from_ms(2), Span::from_ms(100)).unwrap();
    let by_hand = [
        fifo(),
        Attributes::reserved(other, true),
        Attributes::reserved(small(), false),
    ];
    let questions = [
        DeadlineActuator::standing,
        DeadlineActuator::standing_of_running,
    ];
    for (theirs, standing) in by_hand.into_iter().flat_map(|t| questions.map(|q| (t, q))) {
        let process = Process::asleep();
        let task = process.task();
        reserve(&mut actuator, task, small());
        assert_eq!(standing(&mut actuator, task), Standing::Held(small()));
        theirs.set(task.tid).unwrap();

        assert_eq!(standing(&mut actuator, task), Standing::TakenOver);
        let refusal = actuator.reserve(task, small()).unwrap_err();
        assert!(matches!(&refusal, Refusal::TakenOver { now } if *now == theirs.to_string()));
        assert!(matches!(
            actuator.release(task),
            Err(Refusal::TakenOver { .. })
        ));
        assert_eq!(actuator.release_all(Span::ZERO), []);
        assert_eq!(scheduling(task), theirs);
    }
}

#[test]
fn a_change_that_nobody_had_looked_at_yet_wins_too() {
    let mut actuator = live();
    let process = Process::asleep();
    reserve(&mut actuator, process.task(), small());
    fifo().set(process.task().tid).unwrap();
    drop(actuator);
    assert_eq!(scheduling(process.task()), fifo());
}

#[test]
fn a_nice_value_given_by_hand_meanwhile_stays() {
    let mut actuator = live();
    let process = Process::asleep();
    let task = process.task();
    set_nice(task, 4);
    let before = scheduling(task);
    reserve(&mut actuator, task, small());
    set_nice(task, 11);
    assert_eq!(kept_nice(task.tid).unwrap(), 11);
    assert_eq!(actuator.standing(task), Standing::Held(small()));
    release(&mut actuator, task);
    assert_eq!(scheduling(task), before.with_nice(11));
}

#[test]
fn a_task_with_a_reservation_of_its_own_is_left_alone() {
    let mut actuator = live();
    let process = Process::asleep();
    let own = Attributes::reserved(small(), false);
    own.set(process.task().tid).unwrap();
    let refusal = actuator.reserve(process.task(), small()).unwrap_err();
    assert!(refusal.to_string().contains("SCHED_DEADLINE"), "{refusal}");
    assert_eq!(actuator.standing(process.task()), Standing::Own);
    assert_eq!(scheduling(process.task()), own);
}

#[test]
fn children_of_a_reserved_task_are_ordinary_tasks() {
    let mut actuator = live();
    let parent = Process::start(
        Command::new("sh").args(["-c", "while :; do sh -c 'sleep 0.01; exec true'; done"]),
    );
    let task = parent.task();
    let before = scheduling(task);
    for _ in 0..3 {
        reserve(&mut actuator, task, small());
        let children = format!("/proc/{0}/task/{0}/children", task.tid);
        eventually("a child", || {
            let listed = std::fs::read_to_string(&children).unwrap();
            let child: u32 = listed.split_whitespace().next()?.parse().ok()?;
            let scheduling = Attributes::get(child).ok()?;
            assert!(
                matches!(scheduling.policy, Policy::Other(_)),
                "{scheduling}"
            );
            Some(())
        });
        assert_eq!(actuator.standing(task), Standing::Held(small()));
        release(&mut actuator, task);
        assert_eq!(scheduling(task), before);
    }
}

#[test]
fn a_task_bound_to_one_cpu_is_refused_with_what_to_do() {
    let mut actuator = live();
    if actuator.capacity().cpus < 2 {
        println!("skipped: hands_off: the only CPU is all CPUs");
        return;
    }
    let process = Process::start(Command::new("taskset").args(["-c", "0", "sleep", "1000"]));
    eventually("one CPU", || {
        (allowed_cpus(process.task().tid).unwrap().1 == 1).then_some(())
    });
    let before = scheduling(process.task());
    let refusal = actuator.reserve(process.task(), small()).unwrap_err();
    let Refusal::NarrowAffinity { advice } = refusal else {
        panic!("{refusal}");
    };
    assert!(advice.contains("CPU 0 alone"), "{advice}");
    assert!(advice.contains("taskset -pc 0-"), "{advice}");
    assert_eq!(scheduling(process.task()), before);
}
