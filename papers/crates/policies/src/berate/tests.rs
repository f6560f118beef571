use std::collections::BTreeMap;

use onbeat_model::{Instant, Span};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::{Berate, Task};

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

/// Has run for a quantum, and is part of the load with it.
fn compute(rules: &mut Berate, task: &mut Task, now: Instant) {
    rules.charge(task, Span::from_ms(60), now);
    rules.put_back(task, None, now);
}

/// A task that runs for `busy` of each 40 ms up to the second 4, where it wakes again; another one
/// is in the run queue, too.
fn periodic(rules: &mut Berate, other: &mut Task, busy: u64) -> Task {
    let mut task = rules.join(0, Instant::ZERO);
    for n in 0..100 {
        rules.wakeup(&mut task, at(n * 40));
        compute(rules, other, at(n * 40));
        rules.charge(&mut task, Span::from_ms(busy), at(n * 40 + busy));
        rules.block(&mut task, at(n * 40 + busy));
    }
    rules.wakeup(&mut task, at(4000));
    task
}

/// Such a task beside another one that has the other half of the CPU.
fn periodic_beside_one(busy: u64) -> (Berate, Task) {
    let mut rules = Berate::default();
    let mut other = rules.join(0, Instant::ZERO);
    let task = periodic(&mut rules, &mut other, busy);
    (rules, task)
}

fn period_ms(task: &Task, woke: u64) -> u64 {
    (task.deadline_ns - woke * MS + MS / 2) / MS
}

#[test]
fn who_needs_its_fair_share_has_its_true_period_as_the_estimate() {
    // Section 3.3: a / p_actual = q / L, as 20 ms of 40 beside one other task.
    let (_, task) = periodic_beside_one(20);
    assert_eq!(period_ms(&task, 4000), 40);
}

#[test]
fn who_needs_less_has_an_earlier_deadline_and_who_needs_more_a_later_one() {
    let (_, task) = periodic_beside_one(10);
    assert_eq!(period_ms(&task, 4000), 20);
    let (_, task) = periodic_beside_one(24);
    assert_eq!(period_ms(&task, 4000), 48);
}

#[test]
fn those_who_sleep_for_long_do_not_make_a_deadline_later() {
    let (mut rules, mut task) = periodic_beside_one(20);
    for _ in 0..100 {
        rules.join(0, at(4000));
    }
    let next = |rules: &mut Berate, task: &mut Task, woke| {
        rules.charge(task, Span::from_ms(20), at(woke - 20));
        rules.block(task, at(woke - 20));
        rules.wakeup(task, at(woke));
        period_ms(task, woke)
    };
    let daemons_sleep = next(&mut rules, &mut task, 4040);
    assert_eq!(daemons_sleep, 40);
    // The other one was in the run queue up to the second 4.
    let is_alone = next(&mut rules, &mut task, 6100);
    assert_eq!(is_alone, 20);
}

#[test]
fn who_never_blocks_is_not_put_off_for_ever_by_who_preempts_it_again_and_again() {
    let mut rules = Berate::default();
    let mut hog = rules.join(0, Instant::ZERO);
    rules.charge(&mut hog, Span::from_ms(60), at(60));
    rules.put_back(&mut hog, None, at(60));
    for n in 1..=20 {
        rules.charge(&mut hog, Span::from_ms(1), at(60 + n * 10));
        rules.put_back(&mut hog, None, at(60 + n * 10));
        let postponed = if n * 10 < 60 {
            60 + n * 10 + 60
        } else {
            60 + 120
        };
        assert_eq!(hog.deadline_ns, postponed * MS);
    }
}

#[test]
fn no_task_that_stands_behind_a_preempted_one_overtakes_it() {
    let mut rules = Berate::default();
    let mut hog = rules.join(0, Instant::ZERO);
    let mut other = rules.join(0, Instant::ZERO);
    for task in [&mut hog, &mut other] {
        compute(&mut rules, task, at(60));
    }
    compute(&mut rules, &mut hog, at(2060));
    let child = rules.join(0, at(2080));
    let behind = rules.key(&child, at(2080));
    for n in 1..15 {
        let now = at(2080 + n * 4);
        rules.charge(&mut hog, Span::from_ms(4), now);
        rules.put_back(&mut hog, Some(behind), now);
        assert!(rules.key(&hog, now) < behind, "{n}");
    }
    compute(&mut rules, &mut hog, at(2140));
    assert!(rules.key(&hog, at(2140)) > behind, "its quantum is over");
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_load_is_of_those_that_ran_for_long_enough_in_this_window_and_have_not_ended_or_in_the_one_before(
        steps in prop::collection::vec((0_u8..4, 0_usize..8, -25_i8..25, 0_u64..1500, 0_u64..20), 1..300),
    ) {
        let mut rules = Berate::default();
        let mut tasks: Vec<Twin> = Vec::new();
        // The tasks in the load of each window, with the quantum that each had then.
        let mut windows: BTreeMap<u64, BTreeMap<usize, u64>> = BTreeMap::new();
        let (mut now, mut begun) = (0, 0);
        for (what, which, nice, passed, ran) in steps {
            now += passed;
            if what == 0 || tasks.is_empty() {
                tasks.push(Twin { name: begun, task: rules.join(nice, at(now)), ran: BTreeMap::new() });
                begun += 1;
                continue;
            }
            let which = which % tasks.len();
            let Twin { name, task, ran: in_windows } = &mut tasks[which];
            match what {
                1 => rules.renice(task, nice),
                2 => {
                    rules.leave(task);
                    if let Some(mut newest) = windows.last_entry() {
                        newest.get_mut().remove(name);
                    }
                    tasks.remove(which);
                }
                _ => {
                    rules.charge(task, Span::from_ms(ran), at(now));
                    rules.wakeup(task, at(now));
                    let all = in_windows.entry(now / 2000).or_default();
                    *all += ran * MS;
                    let counted = windows.entry(now / 2000).or_default();
                    if *all >= task.quantum_ns / 16 {
                        counted.entry(*name).or_insert(task.quantum_ns);
                    }
                    let own = if counted.contains_key(name) { 0 } else { task.quantum_ns };
                    let sum = |window: u64| -> u64 { windows.get(&window).map_or(0, |counted| counted.values().sum()) };
                    let before = (now / 2000).checked_sub(1).map_or(0, sum);
                    let load = (sum(now / 2000) + own).max(before).max(task.quantum_ns);
                    let period = task.mean_ns / 1000 * (load / 1000) / (task.quantum_ns / 1000) * 1000;
                    prop_assert_eq!(task.deadline_ns, now * MS + period);
                }
            }
        }
    }
}

/// A task, and what it ran in each window.
struct Twin {
    name: usize,
    task: Task,
    ran: BTreeMap<u64, u64>,
}
