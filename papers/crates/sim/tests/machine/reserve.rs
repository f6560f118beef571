//! Group reservations: no more than the bandwidth, no less either, and in the order of deadlines.

use crate::common::{Kept, Task, cases, run};
use onbeat_model::{Instant, Reservation, Span};
use onbeat_policies::reserve::Params;
use onbeat_sim::observe::{Completion, Stretch};
use onbeat_sim::policy::linux::{Class, Config, DeadlineClass, Fair, Linux};
use onbeat_sim::policy::reserve::{Reserve, ReservePlace};
use proptest::prelude::*;

/// 200 ms, in microseconds.
const DURATION: u64 = 200_000;
const PORTION_NS: u64 = 1_000_000;

/// A thread that is never done.
fn hog() -> Task {
    Task {
        period: DURATION,
        phase: 0,
        demands: vec![DURATION],
        server: None,
    }
}

#[derive(Clone, Debug)]
struct Group {
    runtime: u64,
    period: u64,
    threads: Vec<Task>,
}

impl Group {
    fn reservation(&self) -> Reservation {
        Reservation::implicit(Span::from_us(self.runtime), Span::from_us(self.period)).unwrap()
    }
}

/// Runs the groups beside hogs, and gives whose each task was.
fn simulate(groups: &[Group], hogs: usize, count: usize) -> (Kept, Vec<Option<usize>>) {
    let reservations: Vec<Reservation> = groups.iter().map(Group::reservation).collect();
    let mut tasks = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let threads = group.threads.iter();
        tasks.extend(threads.map(|thread| (Some(number), thread.clone())));
    }
    tasks.extend((0..hogs).map(|_| (None, hog())));
    let places = tasks
        .iter()
        .map(|(group, _)| group.map_or(ReservePlace::Weight(100), ReservePlace::Member));
    let params = Params {
        portion_ns: PORTION_NS,
        ..Params::default()
    };
    let policy = Reserve::new(params, count, &reservations, places);
    let ran = run(
        policy,
        count,
        tasks.iter().map(|(_, thread)| thread),
        DURATION,
    );
    (ran, tasks.into_iter().map(|(group, _)| group).collect())
}

fn thread() -> impl Strategy<Value = Task> {
    let demands = prop::collection::vec(50..20_000_u64, 1..4);
    (1_000..40_000_u64, 0..20_000_u64, demands).prop_map(|(period, phase, demands)| Task {
        period,
        phase,
        demands,
        server: None,
    })
}

fn group(threads: usize) -> impl Strategy<Value = Group> {
    let threads = prop::collection::vec(thread(), 1..=threads);
    (2_000..30_000_u64, 5..60_u64, threads).prop_map(|(period, share, threads)| Group {
        runtime: period * share / 100,
        period,
        threads,
    })
}

/// The execution between two times, in ns.
fn executed(stretches: &[Stretch], from: Instant, to: Instant) -> u64 {
    let within = |stretch: &Stretch| stretch.to.min(to).since(stretch.from.max(from)).as_ns();
    let overlap = stretches.iter().filter(|s| s.from < to && s.to > from);
    overlap.map(within).sum()
}

/// How much the group may execute in a window of this length, all in ns: t U + 2 Q (1 - U / m), the
/// supply bound, as long as no deadline passes with budget left. Where one does, for want of CPU
/// time, what is left comes late, and the next budget at once: t U + 3 Q.
fn supply(group: &Group, window: f64, cpus: usize, in_time: bool) -> f64 {
    let (runtime, period) = (group.runtime as f64 * 1e3, group.period as f64 * 1e3);
    let share = runtime / period;
    let at_once = if in_time {
        2.0 * (1.0 - share / cpus as f64)
    } else {
        3.0
    };
    window * share + at_once * runtime
}

fn stays_within_supply(group: &Group, stretches: &[Stretch], cpus: usize, in_time: bool) {
    for (first, from) in stretches.iter().enumerate() {
        for to in &stretches[first..] {
            let window = to.to.since(from.from).as_ns() as f64;
            let most = supply(group, window, cpus, in_time);
            let executed = executed(stretches, from.from, to.to) as f64;
            assert!(
                executed <= most + 1.0,
                "{executed} ns in {window} ns from {:?} on, of {most} at most",
                from.from
            );
        }
    }
}

fn of_group(ran: &Kept, of: &[Option<usize>], group: usize) -> Vec<Stretch> {
    let own = ran.stretches.iter();
    let own = own.filter(|stretch| of[stretch.task] == Some(group));
    own.copied().collect()
}

/// The same groups with smaller budgets, so that all together have at most 95% of one CPU.
fn admitted(groups: &[Group]) -> Vec<Group> {
    let total: f64 = groups.iter().map(share).sum();
    let scale = (0.95 / total).min(1.0);
    let groups = groups.iter().cloned();
    groups
        .map(|group| Group {
            runtime: ((group.runtime as f64 * scale) as u64).max(1),
            ..group
        })
        .collect()
}

fn share(group: &Group) -> f64 {
    group.runtime as f64 / group.period as f64
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn no_group_exceeds_its_bandwidth_in_any_window(
        groups in prop::collection::vec(group(3), 1..4),
        hogs in 0..3_usize,
    ) {
        let groups = admitted(&groups);
        let (ran, of) = simulate(&groups, hogs, 1);
        for (number, group) in groups.iter().enumerate() {
            stays_within_supply(group, &of_group(&ran, &of, number), 1, true);
        }
    }

    #[test]
    fn threads_that_run_on_several_cpus_at_a_time_exceed_the_budget_of_their_group_no_more_than_one_does(
        group in group(4),
        hogs in 0..3_usize,
        count in 2..4_usize,
    ) {
        let (ran, of) = simulate(std::slice::from_ref(&group), hogs, count);
        stays_within_supply(&group, &of_group(&ran, &of, 0), count, true);
    }

    #[test]
    fn even_where_more_is_reserved_than_there_is_no_group_exceeds_its_bandwidth_for_long(
        groups in prop::collection::vec(group(3), 1..6),
        count in 1..4_usize,
    ) {
        let (ran, of) = simulate(&groups, 1, count);
        for (number, group) in groups.iter().enumerate() {
            stays_within_supply(group, &of_group(&ran, &of, number), count, false);
        }
    }

    #[test]
    fn a_group_that_keeps_to_its_reservation_meets_its_deadlines_whatever_the_others_do(
        threads in prop::collection::vec(1..100_u64, 1..4),
        period in 4_000..20_000_u64,
        share in 5..50_u64,
        others in prop::collection::vec(group(2), 0..3),
        hogs in 0..3_usize,
    ) {
        // The threads share the budget of each period; the other groups have the rest of the CPU at
        // most.
        let runtime = period * share / 100;
        let parts: u64 = threads.iter().sum();
        let threads = threads.iter().map(|part| Task {
            period,
            phase: 0,
            demands: vec![(runtime * part / parts).max(1)],
            server: None,
        });
        let quiet = Group { runtime: runtime + 3, period, threads: threads.collect() };
        let mut room = 99 - share;
        let mut groups = vec![quiet];
        for mut other in others {
            let part = (other.runtime * 100 / other.period + 1).min(room / 2);
            room -= part;
            other.runtime = (other.period * part / 100).max(1);
            groups.push(other);
        }
        let (ran, of) = simulate(&groups, hogs, 1);
        let own: Vec<&Completion> = ran.jobs.iter().filter(|job| of[job.task] == Some(0)).collect();
        prop_assert!(!own.is_empty());
        for job in own {
            prop_assert!(!job.missed(), "job {} of task {}: due at {:?}, done at {:?}", job.number, job.task, job.deadline, job.ended);
        }
    }

    #[test]
    fn groups_of_one_thread_are_scheduled_as_the_kernel_does_with_sched_deadline(
        groups in prop::collection::vec(group(1), 1..5),
    ) {
        // Periods of which no two ever end together: the order among equal deadlines is not
        // promised.
        let groups: Vec<Group> = groups.into_iter().zip([7_919, 10_007, 12_007, 14_009, 17_011])
            .map(|(group, period)| Group { runtime: (group.runtime * period / group.period / 4).max(1), period, ..group })
            .collect();
        let (ran, _) = simulate(&groups, 1, 1);
        let linux = by_linux(&groups);
        prop_assert!(!linux.stretches.is_empty());
        prop_assert_eq!(ran.stretches, linux.stretches);
        prop_assert_eq!(ran.jobs.len(), linux.jobs.len());
    }
}

#[test]
fn threads_of_a_group_share_a_budget_that_never_runs_out() {
    let group = Group {
        runtime: 20_000,
        period: 20_000,
        threads: vec![hog(); 3],
    };
    let (ran, _) = simulate(&[group], 0, 1);
    for task in 0..3 {
        let own: Vec<Stretch> = ran
            .stretches
            .iter()
            .filter(|s| s.task == task)
            .copied()
            .collect();
        let all = executed(&own, Instant::ZERO, Instant::ZERO + Span::from_us(DURATION));
        assert!(all >= DURATION * 1_000 / 4, "thread {task} had {all} ns");
    }
}

#[test]
fn a_task_of_little_weight_holds_up_nobody_who_sleeps() {
    let sleeper = Task {
        period: 20_000,
        phase: 7_000,
        demands: vec![1_000],
        server: None,
    };
    let threads = [hog(), hog(), sleeper];
    let weights = [1, 100, 100].map(ReservePlace::Weight);
    let policy = Reserve::new(Params::default(), 1, &[], weights);
    let ran = run(policy, 1, &threads, DURATION);
    let jobs: Vec<Span> = ran
        .jobs
        .iter()
        .filter(|job| job.task == 2)
        .map(Completion::response)
        .collect();
    assert_eq!(jobs.len(), 10);
    assert!(
        jobs.iter().all(|&response| response < Span::from_ms(10)),
        "{jobs:?}"
    );
}

/// The same groups as threads under SCHED_DEADLINE, which the simulator has of its own, and a fair
/// hog.
fn by_linux(groups: &[Group]) -> Kept {
    let deadline = |group: &Group| Class::Deadline(DeadlineClass::hard(group.reservation()));
    let classes = groups.iter().map(deadline);
    let classes = classes.chain([Class::Fair(Fair::nice(0))]);
    let policy = Linux::new(Config::global(1), classes.map(|class| (class, 0)));
    let hog = hog();
    let threads = groups.iter().map(|group| &group.threads[0]);
    run(policy, 1, threads.chain([&hog]), DURATION)
}
