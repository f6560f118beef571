use onbeat_model::{Instant, Span};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::{Berate, Task};
use crate::Rules;
use crate::boost::ONE;

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

/// A task that runs for `busy` of each 40 ms up to the second 4, where it wakes again.
fn periodic(rules: &mut Berate, busy: u64) -> Task {
    let mut task = rules.join(0, Instant::ZERO);
    for n in 0..100 {
        rules.wakeup(&mut task, at(n * 40));
        rules.charge(&mut task, Span::from_ms(busy), at(n * 40 + busy));
        rules.block(&mut task, at(n * 40 + busy));
    }
    rules.wakeup(&mut task, at(4000));
    task
}

fn period_ms(task: &Task, woke: u64) -> u64 {
    (task.deadline_ns - woke * MS + MS / 2) / MS
}

#[test]
fn who_needs_its_fair_share_has_its_true_period_as_the_estimate() {
    // Section 3.3: a / p_actual = q / L, as 20 ms of 40 beside one other task.
    let mut rules = Berate::default();
    rules.join(0, Instant::ZERO);
    let task = periodic(&mut rules, 20);
    assert_eq!(rules.machine.load_ns, 120 * MS);
    assert_eq!(period_ms(&task, 4000), 40);
}

#[test]
fn who_needs_less_has_an_earlier_deadline_and_who_needs_more_a_later_one() {
    let mut rules = Berate::default();
    rules.join(0, Instant::ZERO);
    let task = periodic(&mut rules, 10);
    assert_eq!(period_ms(&task, 4000), 20);
    let mut rules = Berate::default();
    rules.join(0, Instant::ZERO);
    let task = periodic(&mut rules, 24);
    assert_eq!(period_ms(&task, 4000), 48);
}

#[test]
fn the_period_of_who_never_blocks_is_all_quanta_together() {
    let mut rules = Berate::default();
    rules.join(0, Instant::ZERO);
    rules.join(0, Instant::ZERO);
    let mut hog = rules.join(0, Instant::ZERO);
    rules.wakeup(&mut hog, at(0));
    rules.charge(&mut hog, Span::from_ms(60), at(60));
    assert!(rules.tick(&mut hog, at(60)));
    rules.put_back(&mut hog, at(60));
    assert_eq!(hog.mean_ns, 60 * MS);
    assert_eq!(period_ms(&hog, 60), 180);
}

#[test]
fn only_who_never_blocks_has_its_deadline_postponed_when_it_is_preempted() {
    let mut rules = Berate::default();
    let mut task = periodic(&mut rules, 20);
    let mut hog = rules.join(0, Instant::ZERO);
    rules.wakeup(&mut hog, at(0));
    rules.charge(&mut hog, Span::from_ms(60), at(3990));
    rules.put_back(&mut hog, at(3990));
    let deadlines = (task.deadline_ns, hog.deadline_ns);
    for preempted in [&mut task, &mut hog] {
        rules.charge(preempted, Span::from_ms(15), at(4060));
        rules.put_back(preempted, at(4060));
    }
    assert_eq!(task.deadline_ns, deadlines.0);
    assert_eq!(period_ms(&hog, 4060), 120);
    assert!(hog.deadline_ns > deadlines.1);
}

#[test]
fn a_notification_brings_the_deadline_forward_for_a_while() {
    let mut rules = Berate::default();
    let mut hog = rules.join(0, Instant::ZERO);
    let mut task = periodic(&mut rules, 24);
    let mut silent = task;
    assert!(rules.mdn(&mut task, at(4024)));
    let next = |rules: &mut Berate, task: &mut Task, woke| {
        rules.charge(task, Span::from_ms(24), at(4024));
        rules.block(task, at(4024));
        rules.wakeup(task, at(woke));
        period_ms(task, woke)
    };
    assert_eq!(next(&mut rules, &mut silent, 4040), 48);
    let mut later = task;
    assert!(next(&mut rules, &mut task, 4040) < 45);
    assert_eq!(next(&mut rules, &mut later, 60_000), 48);
    rules.wakeup(&mut hog, at(0));
    rules.charge(&mut hog, Span::from_ms(60), at(60));
    assert!(!rules.mdn(&mut hog, at(60)), "it never blocks");
    assert_eq!(hog.boost.extra, 0);
}

#[test]
fn the_boost_cannot_be_more_than_the_block_ratio_is_worth() {
    let mut rules = Berate::default();
    for busy in [4, 20, 36] {
        let mut task = periodic(&mut rules, busy);
        for us in 0..10_000 {
            rules.mdn(&mut task, at(4000) + Span::from_us(us));
        }
        let most = rules.params.boost.most * (40 - busy) / 40 * (40 - busy) / 40;
        assert!(task.boost.extra <= most + ONE / 10, "{busy}: {task:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_load_is_the_sum_of_all_quanta_whoever_comes_and_goes(
        steps in prop::collection::vec((0_u8..3, 0_usize..8, -25_i8..25), 1..200),
    ) {
        let mut rules = Berate::default();
        let mut tasks: Vec<Task> = Vec::new();
        for (what, which, nice) in steps {
            match (what, tasks.len()) {
                (0, _) | (_, 0) => tasks.push(rules.join(nice, Instant::ZERO)),
                (1, count) => rules.renice(&mut tasks[which % count], nice),
                (_, count) => {
                    let mut gone = tasks.swap_remove(which % count);
                    rules.leave(&mut gone);
                }
            }
            let sum: u64 = tasks.iter().map(|task| task.quantum_ns).sum();
            prop_assert_eq!(rules.machine.load_ns, sum);
        }
    }
}
