use std::process::Command;
use std::time::Duration;

use onbeat_act::attributes::{Attributes, Policy, RealTime, kept_nice};
use onbeat_act::restore::{Outcome, restore};
use onbeat_act::watcher::{self, Loses};
use onbeat_model::{Actuator, Boost, Refusal, Span, TaskId};

use crate::common::{
    Process, actuator, attributes, fair, live, release, reserve, scheduling, set_nice, small,
};

const DEFAULT: Attributes = Attributes::ordinary(0, false);

const fn boost(levels: u8) -> Option<Boost> {
    of(levels, 0)
}

const fn first() -> Option<Boost> {
    of(20, 1)
}

const fn of(levels: u8, priority: u32) -> Option<Boost> {
    Some(Boost {
        levels,
        slice: Span::from_us(700),
        priority,
    })
}

const FIRST: Attributes = with_priority(1);

const fn with_priority(priority: u32) -> Attributes {
    attributes(Policy::RoundRobin(RealTime { priority }), true)
}

/// With the default scheduling, whatever the test itself was started with.
fn ordinary(process: Process) -> Process {
    DEFAULT.set(process.pid()).unwrap();
    process
}

/// No longer at its beginning, when it might be moved into a control group.
fn settled(process: Process) -> Process {
    std::thread::sleep(Duration::from_millis(310));
    ordinary(process)
}

fn nice(task: TaskId) -> Option<i32> {
    scheduling(task).nice()
}

#[test]
fn a_boost_is_given_changed_and_taken_back() {
    let mut actuator = live();
    for process in [Process::asleep(), Process::busy()].map(ordinary) {
        let task = process.task();
        assert_eq!(scheduling(task), DEFAULT);
        for levels in [2, 5, 1] {
            assert_eq!(actuator.boost(task, boost(levels)), Ok(()));
            assert_eq!(nice(task), Some(-i32::from(levels)));
            assert!(scheduling(task).reset_on_fork);
        }
        assert_eq!(actuator.boost(task, None), Ok(()));
        assert_eq!(scheduling(task), DEFAULT);
        assert_eq!(actuator.boost(task, None), Ok(()));
    }
}

#[test]
fn a_slice_that_is_the_machines_own_is_not_taken_for_somebody_elses_change() {
    let mut actuator = live();
    let process = ordinary(Process::asleep());
    let task = process.task();
    // From 0.7 ms on one CPU to 2.8 ms on eight and more (sched_base_slice_ns).
    for us in [700, 1400, 2100, 2800, 300] {
        let slice = Span::from_us(us);
        let wanted = Some(Boost {
            levels: 2,
            slice,
            priority: 0,
        });
        for _ in 0..2 {
            assert_eq!(actuator.boost(task, wanted), Ok(()), "{slice}");
        }
    }
    assert_eq!(actuator.boost(task, None), Ok(()));
    assert_eq!(scheduling(task), DEFAULT);
}

#[test]
fn what_a_boosted_task_forks_is_not_boosted() {
    let mut actuator = live();
    let mut shell = std::process::Command::new("sh");
    shell.args([
        "-c",
        "echo; read _; exec 3>&1; cut -d' ' -f19 /proc/self/stat >&3; read _",
    ]);
    let (process, _) = Process::talking(&mut shell);
    let mut process = ordinary(process);
    assert_eq!(actuator.boost(process.task(), boost(3)), Ok(()));
    assert_eq!(process.answer("\n").trim(), "0");
    assert_eq!(nice(process.task()), Some(-3));
}

#[test]
fn who_has_a_scheduling_of_its_own_is_not_boosted() {
    let mut actuator = live();
    let own = [
        Policy::Other(fair(5)),
        Policy::Batch(fair(0)),
        Policy::Idle(fair(0)),
    ];
    for policy in own {
        let process = Process::asleep();
        let set = attributes(policy, false);
        set.set(process.pid()).unwrap();
        let before = scheduling(process.task());
        let answer = actuator.boost(process.task(), boost(3));
        assert!(
            matches!(answer, Err(Refusal::NotOrdinary { .. })),
            "{answer:?}"
        );
        assert_eq!(scheduling(process.task()), before);
    }
}

#[test]
fn who_renices_itself_while_it_is_boosted_has_the_more_of_both_or_no_boost_and_its_own_in_the_end()
{
    let mut actuator = live();
    for (wanted, has_rights, had, sets, meanwhile, end) in [
        (boost(10), true, 0, -8, Some(-10), -8),
        (boost(10), true, 0, -12, Some(-12), -12),
        (boost(20), true, -12, -12, Some(-20), -12),
        (boost(10), true, 0, 0, Some(-10), 0),
        (boost(10), true, -8, 0, Some(-10), 0),
        (boost(10), true, 0, 5, Some(5), 5),
        (boost(20), false, 0, -8, Some(-20), 0),
        (first(), true, 0, -8, None, -8),
        (first(), true, 0, 5, Some(5), 5),
    ] {
        let process = match (has_rights, wanted == first()) {
            (false, _) => without_rights(),
            (true, true) => settled(Process::asleep()),
            (true, false) => ordinary(Process::asleep()),
        };
        let task = process.task();
        Attributes::ordinary(had, false).set(task.tid).unwrap();
        assert_eq!(actuator.boost(task, wanted), Ok(()));
        // Threads may do so when they begin, and each time that they get other work.
        for _ in 0..2 {
            set_nice(task, sets);
            let answer = actuator.boost(task, wanted);
            let wins = matches!(answer, Err(Refusal::TakenOver { .. }));
            assert_eq!((wins, nice(task)), (sets > 0, meanwhile), "{answer:?}");
        }
        if sets > 0 {
            // It may be reserved for all the same.
            reserve(&mut actuator, task, small());
            release(&mut actuator, task);
        }
        assert_eq!(actuator.boost(task, None), Ok(()));
        assert_eq!(
            scheduling(task),
            Attributes::ordinary(end, false),
            "{had}, {sets}"
        );
    }
}

#[test]
fn who_changes_its_policy_while_it_is_boosted_keeps_nothing_of_the_boost() {
    let batch = attributes(Policy::Batch(fair(-20)), false);
    let (directory, mut actuator) = actuator();
    let processes = [Process::asleep(), Process::asleep(), Process::asleep()].map(ordinary);
    let [told, killed, real_time] = &processes;
    for process in &processes {
        assert_eq!(actuator.boost(process.task(), boost(20)), Ok(()));
    }
    batch.set(told.pid()).unwrap();
    let fifo = attributes(Policy::Fifo(RealTime { priority: 1 }), false);
    fifo.set(real_time.pid()).unwrap();
    for process in [told, real_time] {
        assert!(actuator.boost(process.task(), boost(20)).is_err());
        assert_eq!(kept_nice(process.pid()).unwrap(), 0);
    }
    batch.set(killed.pid()).unwrap();
    std::mem::forget(actuator);
    restore(directory.path(), true).unwrap();
    assert_eq!(kept_nice(killed.pid()).unwrap(), 0);
}

fn without_rights() -> Process {
    let arguments = [
        "--inh-caps=-all",
        "--bounding-set=-all",
        "--clear-groups",
        "--reuid=65534",
    ];
    let mut command = Command::new("setpriv");
    command.args(arguments).args(["sh", "-c", "echo; read _"]);
    let (process, _) = Process::talking(&mut command);
    DEFAULT.set(process.pid()).unwrap();
    process
}

/// To leave a nice value of -20 for one of -19 takes no right.
#[test]
fn who_has_no_right_to_a_nice_value_keeps_none_of_a_boost_by_another_policy() {
    let (directory, mut actuator) = actuator();
    let [told, killed] = [(); 2].map(|()| without_rights());
    for process in [&told, &killed] {
        assert_eq!(actuator.boost(process.task(), boost(20)), Ok(()));
        let batch = attributes(Policy::Batch(fair(-19)), true);
        batch.set(process.pid()).unwrap();
    }
    assert!(actuator.boost(told.task(), boost(20)).is_err());
    assert_eq!(kept_nice(told.pid()).unwrap(), 0);
    std::mem::forget(actuator);
    restore(directory.path(), true).unwrap();
    assert_eq!(kept_nice(killed.pid()).unwrap(), 0);
}

#[test]
fn a_reservation_takes_a_boosts_place_and_gives_back_what_was_before_both() {
    let mut actuator = live();
    let process = ordinary(Process::asleep());
    let task = process.task();
    assert_eq!(actuator.boost(task, boost(3)), Ok(()));
    reserve(&mut actuator, task, small());
    assert!(actuator.boost(task, boost(3)).is_err());
    release(&mut actuator, task);
    assert_eq!(scheduling(task), DEFAULT);
}

#[test]
fn a_boost_ends_with_its_giver_and_is_restored_after_a_kill() {
    let (directory, mut actuator) = actuator();
    let (kept, reniced) = (ordinary(Process::asleep()), ordinary(Process::asleep()));
    for process in [&kept, &reniced] {
        assert_eq!(actuator.boost(process.task(), boost(4)), Ok(()));
    }
    drop(actuator);
    assert_eq!(scheduling(kept.task()), DEFAULT);
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);

    let (directory, mut actuator) = crate::common::actuator();
    for process in [&kept, &reniced] {
        assert_eq!(actuator.boost(process.task(), boost(4)), Ok(()));
    }
    // As after a kill: nothing is given back, and the state file stays.
    std::mem::forget(actuator);
    let by_hand = Attributes::ordinary(1, false);
    by_hand.set(reniced.pid()).unwrap();
    let report = restore(directory.path(), true).unwrap();
    let outcome = |process: &Process| {
        let found = report
            .tasks
            .iter()
            .find(|(task, _)| *task == process.task());
        found.map(|(_, outcome)| outcome.clone())
    };
    assert_eq!(outcome(&kept), Some(Outcome::Restored));
    assert_eq!(outcome(&reniced), Some(Outcome::LeftAlone { now: by_hand }));
    assert_eq!(
        (scheduling(kept.task()), scheduling(reniced.task())),
        (DEFAULT, by_hand)
    );
}

#[test]
fn who_goes_first_has_its_own_nice_value_below_and_gets_back_what_it_had() {
    let (directory, mut actuator) = actuator();
    for process in [Process::asleep(), Process::busy()].map(settled) {
        let task = process.task();
        for boost in [first(), boost(20), first(), first()] {
            assert_eq!(actuator.boost(task, boost), Ok(()));
            let is_first = scheduling(task) == FIRST;
            assert_eq!(is_first, boost == first(), "{}", scheduling(task));
            assert_eq!(kept_nice(task.tid).unwrap(), if is_first { 0 } else { -20 });
        }
        assert_eq!(actuator.boost(task, None), Ok(()));
        assert_eq!(scheduling(task), DEFAULT);
    }
    let killed = settled(Process::asleep());
    for boost in [boost(20), first()] {
        assert_eq!(actuator.boost(killed.task(), boost), Ok(()));
    }
    // As after a kill.
    std::mem::forget(actuator);
    restore(directory.path(), true).unwrap();
    assert_eq!(scheduling(killed.task()), DEFAULT);
}

#[test]
fn each_priority_of_a_boost_is_given_and_taken_back_also_after_a_crash() {
    let [given, crashed, lowered] =
        [Process::busy(), Process::busy(), Process::asleep()].map(settled);
    let (directory, mut actuator) = actuator();
    for priority in [1, Boost::HIGHEST_PRIORITY, 3] {
        assert_eq!(actuator.boost(given.task(), of(20, priority)), Ok(()));
        assert_eq!(scheduling(given.task()), with_priority(priority));
        with_priority(priority).set(lowered.pid()).unwrap();
        assert!(watcher::lower(lowered.pid(), Loses::Boost));
        let ordinary = Attributes {
            reset_on_fork: true,
            ..DEFAULT
        };
        assert_eq!(scheduling(lowered.task()), ordinary, "{priority}");
    }
    assert_eq!(actuator.boost(given.task(), None), Ok(()));
    assert_eq!(scheduling(given.task()), DEFAULT);
    let others = with_priority(Boost::HIGHEST_PRIORITY + 1);
    others.set(lowered.pid()).unwrap();
    assert!(watcher::lower(lowered.pid(), Loses::Boost));
    assert_eq!(scheduling(lowered.task()), others, "no boost has it");
    for priority in [2, 7] {
        assert_eq!(actuator.boost(crashed.task(), of(20, priority)), Ok(()));
    }
    let report = restore(directory.path(), true).unwrap();
    assert_eq!(report.tasks, [(crashed.task(), Outcome::Restored)]);
    assert_eq!(scheduling(crashed.task()), DEFAULT);
}

#[test]
fn who_limits_its_real_time_does_not_go_first_from_the_next_look_on() {
    let mut actuator = live();
    let process = settled(Process::busy());
    let task = process.task();
    for us in ["200000", "unlimited", "200000"] {
        let limit = format!("--rttime={us}:unlimited");
        let mut prlimit = Command::new("prlimit");
        prlimit.args([limit, format!("--pid={}", task.tid)]);
        assert!(prlimit.status().unwrap().success());
        assert_eq!(actuator.boost(task, first()), Ok(()));
        let is_first = scheduling(task) == FIRST;
        assert_eq!(is_first, us == "unlimited", "{}", scheduling(task));
        assert_eq!(nice(task), (!is_first).then_some(-20));
    }
    assert_eq!(actuator.boost(task, None), Ok(()));
    assert_eq!(scheduling(task), DEFAULT);
}
