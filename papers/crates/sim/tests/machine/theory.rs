//! The machine against what is proven about schedulers.

use crate::common::{Task, fifo, simulate, us};
use onbeat_model::{Reservation, Span};
use onbeat_sim::Work;
use onbeat_sim::Workload;
use onbeat_sim::observe::Completion;
use onbeat_sim::policy::linux::{Class, Config, Fair};
use onbeat_sim::supply::least_supply;
use onbeat_sim::workload::{Arrival, Demand};
use proptest::prelude::*;

/// Response-time analysis of fixed priorities (Joseph and Pandya 1986; Audsley et al. 1993): the
/// least R with R = C + the sum over higher priorities of ceil(R / T) C. None beyond the period.
fn worst_response(tasks: &[Task], number: usize) -> Option<u64> {
    let own = longest(&tasks[number]);
    let mut response = own;
    loop {
        let higher = tasks[..number].iter();
        let next = own
            + higher
                .map(|task| response.div_ceil(task.period) * longest(task))
                .sum::<u64>();
        if next > tasks[number].period {
            return None;
        }
        if next == response {
            return Some(response);
        }
        response = next;
    }
}

fn longest(task: &Task) -> u64 {
    task.demands.iter().copied().max().unwrap_or(0)
}

fn utilisation(tasks: &[Task]) -> f64 {
    let of = |task: &Task| longest(task) as f64 / task.period as f64;
    tasks.iter().map(of).sum()
}

/// Each task always demands the same.
fn steady(count: usize) -> impl Strategy<Value = Vec<Task>> {
    let one = (2..200_u64, 1..60_u64, 0..100_u64);
    prop::collection::vec(one, 1..=count).prop_map(|drawn| {
        let tasks = drawn.into_iter();
        tasks
            .map(|(period, demand, phase)| Task {
                period,
                phase,
                demands: vec![demand.min(period)],
                server: None,
            })
            .collect()
    })
}

fn in_step(tasks: &[Task]) -> Vec<Task> {
    let tasks = tasks.iter().cloned();
    tasks.map(|task| Task { phase: 0, ..task }).collect()
}

fn by_priority(tasks: &[Task]) -> Vec<(Workload, Class, usize)> {
    let tasks = (0..).zip(tasks);
    tasks
        .map(|(number, task)| (task.workload(), fifo(99 - number), 0))
        .collect()
}

fn by_deadline(tasks: &[Task]) -> Vec<(Workload, Class, usize)> {
    let tasks = tasks.iter();
    tasks
        .map(|task| (task.workload(), task.deadline_class(), 0))
        .collect()
}

const DURATION: u64 = 20_000;

proptest! {
    #![proptest_config(crate::common::cases(200))]

    /// The bound holds for any phases, and is reached where all tasks begin at once.
    #[test]
    fn no_response_is_longer_than_the_analysis_says(set in steady(6)) {
        let bounds: Vec<Option<u64>> = (0..set.len()).map(|n| worst_response(&set, n)).collect();
        let (any, _) = simulate(Config::global(1), &by_priority(&set), DURATION);
        for job in &any.jobs {
            if let Some(bound) = bounds[job.task] {
                prop_assert!(job.response() <= Span::from_us(bound), "{job:?}, {bound}");
            }
        }
        let (kept, _) = simulate(Config::global(1), &by_priority(&in_step(&set)), DURATION);
        for (task, bound) in bounds.iter().enumerate() {
            if let Some(bound) = *bound {
                let longest = kept.jobs.iter().filter(|job| job.task == task).map(|job| job.response()).max();
                prop_assert_eq!(longest, Some(Span::from_us(bound)));
            }
        }
    }

    /// Liu and Layland 1973: on one CPU, EDF meets all deadlines if and only if U <= 1. Each budget
    /// is what the task demands, so admission is the same test.
    #[test]
    fn earliest_deadline_first_meets_all_deadlines_up_to_full_use(set in steady(6)) {
        let set: Vec<Task> = set
            .into_iter()
            .map(|task| Task { server: Some((longest(&task), task.period)), ..task })
            .collect();
        let (kept, _) = simulate(Config::global(1), &by_deadline(&set), DURATION);
        let (missed, in_time): (Vec<&Completion>, Vec<&Completion>) = kept.jobs.iter().partition(|job| job.missed());
        if utilisation(&set) <= 1.0 {
            prop_assert_eq!(missed.len(), 0);
            prop_assert_eq!(kept.exhausted.len(), 0);
        } else if utilisation(&set) >= 1.05 {
            // In an interval of this length, more than all of it is due.
            let due = set.iter().map(|task| (DURATION - task.phase) / task.period);
            let in_time = in_time.iter().filter(|job| us(job.deadline) <= DURATION);
            prop_assert!((in_time.count() as u64) < due.sum());
        }
    }

    /// A task in a server is served the same whatever the others do, as long as all servers
    /// together are admissible: it misses no deadline that its own server alone would meet.
    #[test]
    fn a_server_isolates_its_task_from_liars(
        set in steady(4),
        lies in prop::collection::vec(1..2000_u64, 4),
    ) {
        let share = set.len() as u64 + 1;
        let reserved = |task: &Task| ((task.period / share).max(1), task.period);
        prop_assume!(set.iter().all(|task| task.period >= share));
        let honest = Task {
            demands: vec![reserved(&set[0]).0],
            server: Some(reserved(&set[0])),
            ..set[0].clone()
        };
        let mut tasks = vec![honest];
        tasks.extend(set[1..].iter().zip(&lies).map(|(task, &lie)| Task {
            demands: vec![lie],
            server: Some(reserved(task)),
            ..task.clone()
        }));
        let mut classes = by_deadline(&tasks);
        let endless = Workload::new(Arrival::Always, Demand::Constant(Work::ENDLESS));
        classes.push((endless.clone(), Class::Fair(Fair::nice(-20)), 0));
        classes.push((endless, fifo(99), 0));
        let (kept, _) = simulate(Config::global(1), &classes, DURATION);
        let own = kept.jobs.iter().filter(|job| job.task == 0);
        for job in own {
            prop_assert!(!job.missed(), "{job:?}");
        }
    }

    /// A greedy task gets, from the begin of its service on, at least the supply bound of its
    /// reservation, and at most one budget for each period begun.
    #[test]
    fn a_greedy_task_is_supplied_what_its_reservation_promises(set in steady(5), at in 1..DURATION) {
        let share = set.len() as u64;
        prop_assume!(set.iter().all(|task| task.period >= share));
        let greedy: Vec<Task> = set
            .iter()
            .map(|task| Task {
                phase: 0,
                demands: vec![10 * DURATION],
                server: Some(((task.period / share).max(1), task.period)),
                ..task.clone()
            })
            .collect();
        let (_, executed) = simulate(Config::global(1), &by_deadline(&greedy), at);
        for (task, executed) in greedy.iter().zip(executed) {
            let (runtime, period) = task.server.unwrap();
            let server = Reservation::implicit(Span::from_us(runtime), Span::from_us(period)).unwrap();
            let least = least_supply(&server, Span::from_us(at));
            prop_assert!(executed >= least, "{task:?}: {executed}, {least}");
            prop_assert!(executed <= Span::from_us((at.div_ceil(period)) * runtime), "{task:?}");
        }
    }
}

#[test]
fn equal_fair_tasks_share_equally_and_weights_divide_the_rest() {
    let endless = || Workload::new(Arrival::Always, Demand::Constant(Work::ENDLESS));
    let class = |nice| Class::Fair(Fair::nice(nice));
    let tasks = [
        (endless(), class(0), 0),
        (endless(), class(0), 0),
        (endless(), class(5), 0),
    ];
    let duration = 10_000_000;
    let (_, executed) = simulate(Config::global(1), &tasks, duration);
    let weights = [1024.0, 1024.0, 335.0];
    let all: f64 = weights.iter().sum();
    for (executed, weight) in executed.iter().zip(weights) {
        let share = Span::from_us(duration).scale(weight / all);
        // EEVDF's lag is bounded by a slice.
        assert!(
            executed.abs_diff(share) <= Fair::SLICE * 2,
            "{executed}, {share}"
        );
    }
}
