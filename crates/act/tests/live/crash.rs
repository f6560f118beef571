use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use onbeat_act::attributes::{Attributes, Policy, RealTime};
use onbeat_act::restore::{Outcome, Skipped, StateFile, restore};
use onbeat_act::{DeadlineActuator, DeadlineOptions};
use onbeat_model::{Actuator, Reservation, Span, Standing, TaskId};

use crate::common::{
    Bandwidth, Process, actuator, attributes, eventually, example, fair, release, reserve,
    scheduling, small,
};

const ROUNDS: u64 = 50;

fn victims() -> Vec<(Process, Attributes)> {
    let policies = [
        Policy::Other(fair(0)),
        Policy::Other(fair(5)),
        Policy::Batch(fair(-3)),
        Policy::Idle(fair(0)),
        Policy::Fifo(RealTime { priority: 2 }),
        Policy::RoundRobin(RealTime { priority: 9 }),
    ];
    let mut victims: Vec<_> = policies
        .into_iter()
        .map(|policy| {
            let process = Process::asleep();
            let reset_on_fork = matches!(policy, Policy::RoundRobin(_));
            let wanted = attributes(policy, reset_on_fork);
            wanted.set(process.task().tid).unwrap();
            // SCHED_IDLE keeps the nice value that a task has.
            let before = scheduling(process.task());
            (process, before)
        })
        .collect();
    let busy = Process::busy();
    let before = scheduling(busy.task());
    victims.push((busy, before));
    victims
}

#[test]
fn every_task_is_as_before_when_onbeat_was_killed_at_any_moment() {
    let _bandwidth = Bandwidth::a_little();
    let mut restored = 0;
    for seed in 1..=ROUNDS {
        let directory = tempfile::tempdir().unwrap();
        let victims = victims();
        let mut hold = Command::new(example("hold"));
        hold.arg(directory.path()).arg(seed.to_string());
        hold.args(
            victims
                .iter()
                .map(|(victim, _)| victim.task().tid.to_string()),
        );
        let mut onbeat = Process::start(&mut hold);
        // In every other round, it is at work for certain; in the rest it may not even have begun.
        let records = if seed % 2 == 0 { 20 } else { 0 };
        eventually("a state file", || {
            let file = std::fs::read_dir(directory.path()).unwrap().next()?;
            let text = std::fs::read_to_string(file.unwrap().path()).ok()?;
            (text.lines().count() >= records).then_some(())
        });
        std::thread::sleep(Duration::from_micros(seed * seed * 7919 % 60_000));
        onbeat.kill();

        let report = restore(directory.path(), false).unwrap();
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(report.damaged_lines, 0);
        for (victim, before) in &victims {
            assert_eq!(
                scheduling(victim.task()),
                *before,
                "round {seed}: {report:?}"
            );
        }
        let put_back = |outcome: &Outcome| matches!(outcome, Outcome::Restored);
        restored += report.tasks.iter().filter(|(_, o)| put_back(o)).count();
        assert_eq!(restore(directory.path(), false).unwrap().tasks, []);
    }
    assert!(restored > 0, "no round killed onbeat while it held a task");
}

#[test]
fn a_living_onbeats_tasks_are_restored_by_force_only() {
    let _bandwidth = Bandwidth::a_little();
    let (directory, mut actuator) = actuator();
    let process = Process::asleep();
    let before = scheduling(process.task());
    reserve(&mut actuator, process.task(), small());

    let report = restore(directory.path(), false).unwrap();
    assert!(matches!(
        report.skipped.as_slice(),
        [(_, Skipped::OwnerLives(_))]
    ));
    assert_eq!(actuator.standing(process.task()), Standing::Held(small()));

    let report = restore(directory.path(), true).unwrap();
    assert_eq!(report.tasks, [(process.task(), Outcome::Restored)]);
    assert_eq!(scheduling(process.task()), before);
    assert_eq!(actuator.standing(process.task()), Standing::TakenOver);
}

/// A state file left by a dead onbeat: of a process that does not exist.
fn left_behind(directory: &Path, changes: &[(TaskId, Attributes, Attributes)]) {
    left_in(&directory.join("1-1-0.jsonl"), changes);
}

fn left_in(file: &Path, changes: &[(TaskId, Attributes, Attributes)]) {
    let mut lines = String::new();
    for (task, before, set) in changes {
        let task = serde_json::to_string(task).unwrap();
        let before = serde_json::to_string(before).unwrap();
        let set = serde_json::to_string(set).unwrap();
        lines += &format!(
            "{{\"record\":\"change\",\"task\":{task},\"before\":{before},\"set\":{set}}}\n"
        );
    }
    std::fs::write(file, lines).unwrap();
}

/// Whether the kernel holds the task up until its next runtime.
fn is_throttled(task: TaskId) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{}/sched", task.tid)).unwrap();
    let runtime = text.lines().find(|line| line.starts_with("dl.runtime"));
    let left = runtime.and_then(|line| line.rsplit_once(':')?.1.trim().parse::<i64>().ok());
    left.is_some_and(|left| left < 0)
}

#[test]
fn throttled_tasks_are_waited_for_together() {
    let _bandwidth = Bandwidth::a_little();
    let directory = tempfile::tempdir().unwrap();
    let period = Span::from_secs(4);
    let least = Reservation::implicit(Span::from_us(2), period).unwrap();
    let set = Attributes::reserved(least, false);
    let tasks: Vec<(Process, Attributes)> = (0..64)
        .map(|_| {
            let busy = Process::busy();
            let before = scheduling(busy.task());
            set.set(busy.task().tid).unwrap();
            (busy, before)
        })
        .collect();
    // One whose turn comes at this moment may have some runtime again.
    eventually("tasks that are throttled", || {
        let throttled = tasks.iter().filter(|(busy, _)| is_throttled(busy.task()));
        (throttled.count() > 32).then_some(())
    });
    let changes: Vec<_> = tasks
        .iter()
        .map(|(busy, before)| (busy.task(), *before, set))
        .collect();
    left_behind(directory.path(), &changes);
    let began = Instant::now();
    let report = restore(directory.path(), false).unwrap();
    // Each for itself: two of its periods, four minutes for half of them.
    let took = began.elapsed();
    println!("64 tasks, most of them throttled: {took:?}");
    assert!(took < Duration::from_secs(15), "{took:?}: {report:?}");
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(report.tasks.len(), tasks.len());
    for (busy, before) in &tasks {
        assert_eq!(scheduling(busy.task()), *before);
    }
}

#[test]
fn what_lies_below_a_reservation_that_is_not_given_back_is_not_forgotten() {
    let _bandwidth = Bandwidth::a_little();
    let directory = tempfile::tempdir().unwrap();
    let process = Process::asleep();
    let task = process.task();
    let ordinary = scheduling(task);
    let real_time = |priority| attributes(Policy::RoundRobin(RealTime { priority }), true);
    let reserved = Attributes::reserved(small(), false);
    reserved.set(task.tid).unwrap();
    // The kernel has no such priority, and so refuses to put it back.
    let above = directory.path().join("1-1-0.jsonl");
    left_in(&above, &[(task, real_time(200), reserved)]);
    let below = directory.path().join("1-1-1.jsonl");
    left_in(&below, &[(task, ordinary, real_time(5))]);

    let report = restore(directory.path(), false).unwrap();
    assert!(!report.is_complete(), "{report:?}");
    assert!(
        report.tasks.iter().all(|(_, outcome)| outcome.failed()),
        "{report:?}"
    );
    assert!(above.exists() && below.exists());

    left_in(&above, &[(task, real_time(5), reserved)]);
    let report = restore(directory.path(), false).unwrap();
    let put_back = [(task, Outcome::Restored), (task, Outcome::Restored)];
    assert_eq!(report.tasks, put_back);
    assert_eq!(scheduling(task), ordinary);
    assert!(!above.exists() && !below.exists());
}

#[test]
fn what_an_administrator_set_since_the_crash_stays() {
    let _bandwidth = Bandwidth::a_little();
    let directory = tempfile::tempdir().unwrap();
    let [first, second, third, theirs] = [1, 2, 3, 4].map(|ms| {
        let span = Span::from_ms(ms);
        Attributes::reserved(
            Reservation::implicit(span, Span::from_ms(200)).unwrap(),
            false,
        )
    });
    // An earlier setting than the last two can only be another program's choice.
    for (now, is_ours) in [
        (theirs, false),
        (first, false),
        (second, true),
        (third, true),
    ] {
        let process = Process::asleep();
        let task = process.task();
        let before = scheduling(task);
        now.set(task.tid).unwrap();
        left_behind(
            directory.path(),
            &[first, second, third].map(|set| (task, before, set)),
        );
        let report = restore(directory.path(), false).unwrap();
        let (outcome, after) = if is_ours {
            (Outcome::Restored, before)
        } else {
            (Outcome::LeftAlone { now }, now)
        };
        assert_eq!(report.tasks, [(task, outcome)]);
        assert_eq!(scheduling(task), after);
    }
}

#[test]
fn a_number_that_another_task_has_now_is_not_touched() {
    let _bandwidth = Bandwidth::a_little();
    let directory = tempfile::tempdir().unwrap();
    let process = Process::asleep();
    let set = Attributes::reserved(small(), false);
    let before = scheduling(process.task());
    set.set(process.task().tid).unwrap();
    let earlier = TaskId {
        started_ticks: process.task().started_ticks - 1,
        ..process.task()
    };
    left_behind(directory.path(), &[(earlier, before, set)]);
    let report = restore(directory.path(), false).unwrap();
    assert_eq!(report.tasks, [(earlier, Outcome::Gone)]);
    assert_eq!(scheduling(process.task()), set);
}

#[test]
fn nothing_is_changed_when_it_cannot_be_written_down() {
    let _bandwidth = Bandwidth::a_little();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let full_disk = std::thread::spawn(move || {
        mount_one_page(&path);
        let state_file = StateFile::create(&path).unwrap();
        let mut actuator = DeadlineActuator::new(state_file, DeadlineOptions::default());
        let processes: Vec<Process> = (0..40).map(|_| Process::asleep()).collect();
        let least = Reservation::implicit(Span::from_us(100), Span::from_ms(100)).unwrap();
        let (refused, refusal) = processes
            .iter()
            .find_map(|process| Some((process, actuator.reserve(process.task(), least).err()?)))
            .unwrap();
        assert!(refusal.to_string().contains("state file"), "{refusal}");
        assert!(refusal.to_string().contains("free some space"), "{refusal}");
        let before = scheduling(refused.task());
        assert!(matches!(before.policy, Policy::Other(_)), "{before}");

        let held = processes.first().unwrap().task();
        assert_eq!(actuator.standing(held), Standing::Held(least));
        release(&mut actuator, held);
        assert_eq!(scheduling(held), before);
    });
    full_disk.join().unwrap();
}

/// Puts a file system of one page over `path`, for the calling thread alone; it goes with the
/// thread.
fn mount_one_page(path: &Path) {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    let none = std::ptr::null();
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: unshare touches no memory; the strings given to mount end in NUL and outlive the
    // calls, and what they mount is seen by this thread's mount namespace alone.
    unsafe {
        assert_eq!(libc::unshare(libc::CLONE_NEWNS), 0);
        assert_eq!(
            libc::mount(none, c"/".as_ptr(), none, private, none.cast()),
            0
        );
        let size = c"size=4096";
        let tmpfs = c"tmpfs".as_ptr();
        assert_eq!(
            libc::mount(tmpfs, path.as_ptr(), tmpfs, 0, size.as_ptr().cast()),
            0
        );
    }
}
