use onbeat_model::{Instant, Span};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::{Linux24, Task};
use crate::boost::ONE;

const TICK: Span = Span::from_ms(10);

fn at_tick(tick: u64) -> Instant {
    Instant::ZERO + TICK * tick
}

fn runs(rules: &mut Linux24, task: &mut Task, from: u64, ticks: u64) {
    rules.pick(task, at_tick(from));
    rules.charge(task, TICK * ticks, at_tick(from + ticks));
}

#[test]
fn whoever_runs_when_the_clock_ticks_pays_for_the_whole_tick() {
    let mut rules = Linux24::default();
    let mut task = rules.join(0, Instant::ZERO);
    rules.wakeup(&mut task, at_tick(0));
    let ms = |ms| Instant::ZERO + Span::from_ms(ms);
    rules.charge(&mut task, Span::from_ms(8), ms(9));
    assert_eq!(task.counter, 6, "between two ticks nothing is counted");
    rules.charge(&mut task, Span::from_ms(2), ms(11));
    assert_eq!(task.counter, 5);
    assert_eq!(rules.slice(&task, ms(11)), Span::from_ms(49));
}

/// A child of `parent`, which runs, as it is when it first stands in line.
fn child_of(rules: &mut Linux24, parent: &mut Task, tick: u64) -> Task {
    let mut child = rules.join(0, at_tick(tick));
    rules.fork(parent, &mut child);
    child
}

#[test]
fn a_child_has_half_of_its_parents_counter_and_gives_back_what_it_does_not_use() {
    let mut rules = Linux24::default();
    let mut parent = rules.join(0, at_tick(0));
    rules.wakeup(&mut parent, at_tick(0));
    runs(&mut rules, &mut parent, 0, 1);
    let mut child = child_of(&mut rules, &mut parent, 1);
    assert_eq!((parent.counter, child.counter), (2, 3));
    runs(&mut rules, &mut child, 1, 2);
    rules.exit(&mut child, &mut parent);
    runs(&mut rules, &mut parent, 3, 0);
    assert_eq!(parent.counter, 3);
}

#[test]
fn a_chain_of_children_comes_before_a_spent_task_no_longer_than_their_parent_could() {
    let mut rules = Linux24::default();
    let mut spent = rules.join(0, at_tick(0));
    runs(&mut rules, &mut spent, 0, 6);
    rules.put_back(&mut spent, None, at_tick(6));
    let mut parent = rules.join(0, at_tick(6));
    let mut ran = 0;
    for tick in 6.. {
        let mut child = child_of(&mut rules, &mut parent, tick);
        if rules.key(&spent, at_tick(tick)) <= rules.key(&child, at_tick(tick)) {
            break;
        }
        runs(&mut rules, &mut child, tick, 1);
        rules.exit(&mut child, &mut parent);
        rules.wakeup(&mut parent, at_tick(tick + 1));
        ran += 1;
        assert!(ran < 100, "{parent:?}");
    }
    assert_eq!(ran, 6, "as many ticks as the parent had");
}

#[test]
fn what_sleeping_children_were_given_by_recomputations_is_not_saved_for_their_parent() {
    let mut rules = Linux24::default();
    let mut parent = rules.join(0, at_tick(0));
    let mut children: Vec<Task> = (0..50)
        .map(|_| child_of(&mut rules, &mut parent, 0))
        .collect();
    rules.machine.epoch = 6;
    for child in &mut children {
        rules.wakeup(child, at_tick(1));
        rules.exit(child, &mut parent);
    }
    rules.wakeup(&mut parent, at_tick(1));
    assert_eq!(parent.counter, 11, "what any sleeper has by then");
}

/// A task that runs for `busy` of each 10 ticks, up to tick 500.
fn after_five_seconds(rules: &mut Linux24, busy: u64) -> Task {
    let mut task = rules.join(0, Instant::ZERO);
    for cycle in 0..50 {
        rules.wakeup(&mut task, at_tick(cycle * 10));
        runs(rules, &mut task, cycle * 10, busy);
        rules.block(&mut task, at_tick(cycle * 10 + busy));
    }
    rules.wakeup(&mut task, at_tick(500));
    task
}

#[test]
fn the_boost_is_in_proportion_to_the_block_ratio_and_nothing_for_who_never_blocks() {
    let mut rules = Linux24::default();
    rules.params.boost.step = ONE;
    let mut boosts = [1, 5, 9].map(|busy| {
        let mut task = after_five_seconds(&mut rules, busy);
        assert!(rules.mdn(&mut task, at_tick(500)));
        let expected = ONE * (10 - busy) / 10;
        assert!(task.boost.block_ratio.abs_diff(expected) < ONE / 10);
        task.boost.extra
    });
    assert!(boosts.is_sorted_by(|a, b| a > b));
    boosts.sort_unstable();
    assert!(boosts[0] > 0);

    let mut hog = rules.join(0, Instant::ZERO);
    rules.wakeup(&mut hog, Instant::ZERO);
    runs(&mut rules, &mut hog, 0, 500);
    assert!(!rules.mdn(&mut hog, at_tick(500)));
    assert_eq!(hog.boost.extra, 0);
}

/// The scheduler as the paper says it: when all that are ready are spent, it walks over all.
struct Eager {
    counters: Vec<u64>,
    quanta: Vec<u64>,
}

impl Eager {
    fn pick(&mut self, ready: &[bool]) -> Option<u64> {
        let greatest = |counters: &[u64]| {
            let counters = counters.iter().zip(ready).filter(|(_, ready)| **ready);
            counters.map(|(counter, _)| *counter).max()
        };
        if greatest(&self.counters)? == 0 {
            for (counter, quantum) in self.counters.iter_mut().zip(&self.quanta) {
                *counter = *counter / 2 + quantum;
            }
        }
        greatest(&self.counters)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn making_up_for_recomputations_later_is_as_good_as_walking_over_all(
        nices in prop::collection::vec(-20_i8..20, 1..6),
        steps in prop::collection::vec(prop::collection::vec(0_u8..4, 6), 1..200),
    ) {
        let mut rules = Linux24::default();
        let mut tasks: Vec<Task> = nices.iter().map(|&nice| rules.join(nice, Instant::ZERO)).collect();
        let quanta: Vec<u64> = tasks.iter().map(|task| task.quantum).collect();
        let mut eager = Eager { counters: quanta.clone(), quanta };
        let mut ready = vec![false; tasks.len()];
        for (tick, turns) in (0..).zip(steps) {
            for (n, task) in tasks.iter_mut().enumerate() {
                match (turns[n], ready[n]) {
                    (0, true) => rules.block(task, at_tick(tick)),
                    (1, false) => rules.wakeup(task, at_tick(tick)),
                    _ => continue,
                }
                ready[n] = !ready[n];
            }
            let line = tasks.iter().enumerate().filter(|(n, _)| ready[*n]);
            let first = line.min_by_key(|(_, task)| rules.key(task, at_tick(tick)));
            let Some((n, _)) = first else { continue };
            let expected = eager.pick(&ready);
            runs(&mut rules, &mut tasks[n], tick, 0);
            prop_assert_eq!(Some(tasks[n].counter), expected);
            prop_assert_eq!(tasks[n].counter, eager.counters[n]);
            rules.charge(&mut tasks[n], TICK, at_tick(tick + 1));
            eager.counters[n] -= 1;
            rules.put_back(&mut tasks[n], None, at_tick(tick + 1));
        }
    }
}
