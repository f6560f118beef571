use onbeat_model::{Instant, Span};

use super::{Best, Task};

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

/// It wakes, runs for `ran`, and blocks; all in milliseconds.
fn job(rules: &mut Best, task: &mut Task, woke: u64, ran: u64) {
    rules.wakeup(task, at(woke));
    rules.charge(task, Span::from_ms(ran), at(woke + ran));
    rules.block(task, at(woke + ran));
}

/// A task that has woken every 40 ms up to the second 1, where it wakes again.
fn known(rules: &mut Best) -> Task {
    let mut task = rules.join(0, Instant::ZERO);
    for n in 1..25 {
        job(rules, &mut task, n * 40, 10);
    }
    rules.wakeup(&mut task, at(1000));
    task
}

#[test]
fn the_time_between_two_entries_becomes_the_period_and_its_end_the_deadline() {
    let mut rules = Best::default();
    let task = known(&mut rules);
    assert_eq!(task.period_ns, 40 * MS);
    assert!(task.confidence >= rules.params.confident);
    assert_eq!(task.deadline_ns, 1040 * MS);
    assert_eq!(rules.key(&task, at(1000)), 1040 * MS + 1);
}

#[test]
fn who_wakes_irregularly_gets_a_pseudo_period_shorter_than_that_of_who_never_blocks() {
    let mut rules = Best::default();
    let mut task = rules.join(0, Instant::ZERO);
    for woke in [10, 25, 100, 107, 350, 360, 420, 600, 610, 900] {
        job(&mut rules, &mut task, woke, 2);
    }
    rules.wakeup(&mut task, at(1000));
    assert!(task.confidence < rules.params.confident);
    assert_eq!(task.deadline_ns, 1000 * MS + rules.params.interactive_ns);

    let mut hog = rules.join(0, Instant::ZERO);
    rules.wakeup(&mut hog, at(10));
    rules.charge(&mut hog, Span::from_ms(60), at(70));
    assert!(rules.tick(&mut hog, at(70)));
    rules.put_back(&mut hog, None, at(70));
    assert_eq!(hog.deadline_ns, 70 * MS + rules.params.batch_ns);
    assert!(rules.params.interactive_ns < rules.params.batch_ns);
}

#[test]
fn the_pseudo_period_of_who_never_blocks_has_room_for_all_who_do_not() {
    let mut rules = Best::default();
    let mut hogs = [0; 40].map(|_| rules.join(0, Instant::ZERO));
    let run = |rules: &mut Best, hog: &mut Task, now| {
        rules.charge(hog, Span::from_ms(60), at(now));
        rules.put_back(hog, None, at(now));
        hog.deadline_ns / MS - now
    };
    // A window is of 2 s, in which a CPU has 33 runs.
    for (hog, n) in hogs.iter_mut().zip(1..) {
        let seen = if n <= 33 { n } else { 33 };
        assert_eq!(run(&mut rules, hog, n * 60), (2 * seen * 60).max(600));
    }
    // Those who have ended are no more of them: seven were seen in the second window, and four of
    // those are left.
    for hog in &mut hogs[33..36] {
        rules.leave(hog);
    }
    let mut last = rules.join(0, at(4001));
    assert_eq!(run(&mut rules, &mut last, 4001), 600);
    // No task was in the last two.
    assert_eq!(run(&mut rules, &mut last, 12_000), 600);
}

#[test]
fn who_is_preempted_keeps_the_deadline_and_who_ran_for_long_loses_confidence() {
    let mut rules = Best::default();
    let mut task = known(&mut rules);
    let before = task;
    rules.charge(&mut task, Span::from_ms(20), at(1020));
    assert_eq!(rules.slice(&task, at(1020)), Span::from_ms(40));
    rules.put_back(&mut task, None, at(1020));
    assert_eq!(task.deadline_ns, before.deadline_ns);
    rules.charge(&mut task, Span::from_ms(40), at(1060));
    rules.put_back(&mut task, None, at(1060));
    assert!(task.confidence < before.confidence);
    assert!(task.deadline_ns > before.deadline_ns);
}

/// Fig. 3: at 1040 it is late, so that it begins the next job without a wakeup; it wakes again at
/// 1095, a period after it was done. With a notification (Fig. 4) or without.
fn late_once(rules: &mut Best, notifies: bool) -> Task {
    let mut task = known(rules);
    rules.charge(&mut task, Span::from_ms(20), at(1045));
    if notifies {
        assert!(rules.mdn(&mut task, at(1045)));
    }
    rules.charge(&mut task, Span::from_ms(10), at(1060));
    rules.block(&mut task, at(1060));
    rules.wakeup(&mut task, at(1085));
    task
}

#[test]
fn a_missed_deadline_is_taken_for_a_long_period_unless_it_is_notified() {
    let mut rules = Best::default();
    let silent = late_once(&mut rules, false);
    let told = late_once(&mut rules, true);
    assert!(silent.period_ns > 50 * MS, "{silent:?}");
    assert!(silent.confidence < rules.params.confident);
    assert!(told.period_ns.abs_diff(40 * MS) <= 2 * MS, "{told:?}");
    assert!(told.confidence >= rules.params.confident);
    assert_eq!(rules.machine.heard, 1);
}

#[test]
fn a_notification_counts_only_near_the_end_of_a_period_that_was_established() {
    let mut rules = Best::default();
    let task = known(&mut rules);
    for (ms, counts) in [(1029, false), (1031, true), (1049, true), (1051, false)] {
        let mut task = task;
        assert_eq!(rules.mdn(&mut task, at(ms)), counts, "at {ms} ms");
        if !counts {
            assert_eq!((task.period_ns, task.deadline_ns), (40 * MS, 1040 * MS));
        }
    }
    let mut unknown = rules.join(0, Instant::ZERO);
    job(&mut rules, &mut unknown, 100, 5);
    rules.wakeup(&mut unknown, at(140));
    assert!(!rules.mdn(&mut unknown, at(180)));
    rules.params.mdn = 0;
    let mut task = task;
    assert!(!rules.mdn(&mut task, at(1040)));
}

#[test]
fn one_that_comes_too_late_changes_nothing_as_in_the_paper() {
    let mut rules = Best::default();
    let before = known(&mut rules);
    let mut task = before;
    assert!(!rules.mdn(&mut task, at(1100)));
    assert_eq!(task, before);
    assert!(
        rules.mdn(&mut task, at(1049)),
        "within the window it counts"
    );
}

/// It notifies, and sleeps for 20 us until a time that is over, as a program that sets its timer to
/// that time does.
fn notifies_and_naps(rules: &mut Best, task: &mut Task, ms: u64) -> bool {
    let counted = rules.mdn(task, at(ms));
    rules.block(task, at(ms));
    rules.wakeup(task, at(ms) + Span::from_us(20));
    counted
}

#[test]
fn a_nap_after_a_notification_is_no_period_of_its_own() {
    let mut rules = Best::default();
    let mut task = known(&mut rules);
    for period in 1..=5 {
        assert!(notifies_and_naps(&mut rules, &mut task, 1000 + 40 * period));
        assert_eq!(task.period_ns, 40 * MS);
        assert_eq!(task.deadline_ns, (1040 + 40 * period) * MS);
    }
    // Without a notification it is.
    rules.block(&mut task, at(1210));
    rules.wakeup(&mut task, at(1211));
    assert!(task.period_ns < 35 * MS, "{task:?}");
}
