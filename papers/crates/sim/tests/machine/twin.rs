//! The machine against its slow, obviously right twin: a simulator that goes forward one
//! microsecond at a time, looks at every task each time, and runs the best ones.

use crate::common::{Task, fifo, simulate, us};
use onbeat_sim::policy::linux::Config;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// Earliest deadline first in hard constant bandwidth servers.
    Deadline,
    /// The first task first.
    Fixed,
}

#[derive(Clone, Debug)]
struct Twin<'a> {
    task: &'a Task,
    number: usize,
    job: usize,
    release: u64,
    left: u64,
    ready: bool,
    budget: i64,
    deadline: Option<u64>,
    throttled: bool,
    came: u64,
}

impl Twin<'_> {
    fn runtime(&self) -> i64 {
        i64::try_from(self.task.server.map_or(self.task.period, |server| server.0)).unwrap()
    }

    fn server_period(&self) -> u64 {
        self.task.server.map_or(self.task.period, |server| server.1)
    }

    fn begin_job(&mut self) {
        self.left = self.task.demands[self.job % self.task.demands.len()];
    }

    fn wake(&mut self, now: u64) {
        self.ready = true;
        self.begin_job();
        if self.throttled {
            return;
        }
        let keeps = self.deadline.is_some_and(|deadline| {
            let room = i64::try_from(deadline).unwrap() - i64::try_from(now).unwrap();
            let period = i64::try_from(self.server_period()).unwrap();
            room >= 0 && self.budget * period <= room * self.runtime()
        });
        if !keeps {
            self.deadline = Some(now + self.server_period());
            self.budget = self.runtime();
        }
    }

    fn refill(&mut self, now: u64) {
        self.throttled = false;
        let mut deadline = self.deadline.unwrap();
        while self.budget <= 0 {
            self.budget += self.runtime();
            deadline += self.server_period();
        }
        if deadline < now {
            deadline = now + self.server_period();
            self.budget = self.runtime();
        }
        self.deadline = Some(deadline);
    }
}

/// Task, number of the job, and when it ended.
type Ended = Vec<(usize, u64, u64)>;

/// The jobs that ended before two deadlines were equal on several CPUs for the first time: which of
/// two such tasks gives way is not part of the rule.
fn tick_by_tick(rule: Rule, tasks: &[Task], cpus: usize, duration: u64) -> (Ended, u64) {
    let mut came = 0;
    let mut twins: Vec<Twin> = tasks
        .iter()
        .enumerate()
        .map(|(number, task)| Twin {
            task,
            number,
            job: 0,
            release: task.phase,
            left: 0,
            ready: false,
            budget: 0,
            deadline: None,
            throttled: false,
            came: 0,
        })
        .collect();
    let mut ended = Vec::new();
    for now in 0..duration {
        for twin in &mut twins {
            if twin.throttled && Some(now) >= twin.deadline {
                twin.refill(now);
                came += 1;
                twin.came = came;
            }
        }
        for twin in &mut twins {
            if !twin.ready && twin.release <= now {
                twin.wake(now);
                came += 1;
                twin.came = came;
            }
        }
        let mut runnable: Vec<&mut Twin> = twins
            .iter_mut()
            .filter(|twin| twin.ready && !(rule == Rule::Deadline && twin.throttled))
            .collect();
        runnable.sort_by_key(|twin| match rule {
            Rule::Deadline => (twin.deadline, twin.came),
            Rule::Fixed => (None, twin.number as u64),
        });
        let tied = runnable
            .windows(2)
            .any(|pair| pair[0].deadline == pair[1].deadline);
        if cpus > 1 && rule == Rule::Deadline && tied {
            ended.sort_unstable();
            return (ended, now);
        }
        let end = now + 1;
        for twin in runnable.into_iter().take(cpus) {
            twin.left -= 1;
            twin.budget -= 1;
            if rule == Rule::Deadline && twin.budget <= 0 {
                twin.throttled = true;
                if twin.deadline <= Some(end) {
                    twin.refill(end);
                    came += 1;
                    twin.came = came;
                }
            }
            if twin.left > 0 {
                continue;
            }
            ended.push((twin.number, twin.job as u64, end));
            twin.job += 1;
            twin.release += twin.task.period;
            if twin.release <= end {
                twin.begin_job();
            } else {
                twin.ready = false;
            }
        }
    }
    ended.sort_unstable();
    (ended, duration)
}

fn event_by_event(rule: Rule, tasks: &[Task], cpus: usize, duration: u64) -> Ended {
    let classes = tasks.iter().enumerate().map(|(number, task)| {
        let class = match rule {
            Rule::Deadline => task.deadline_class(),
            Rule::Fixed => fifo(99 - u8::try_from(number).unwrap()),
        };
        (task.workload(), class, 0)
    });
    let (kept, _) = simulate(Config::global(cpus), &classes.collect::<Vec<_>>(), duration);
    let jobs = kept.jobs.iter();
    let mut ended: Ended = jobs
        .map(|job| (job.task, job.number, us(job.ended)))
        .collect();
    ended.sort_unstable();
    ended
}

/// Tasks whose beats never fall together, so that no two deadlines are equal.
fn tasks(count: usize, with_servers: bool) -> impl Strategy<Value = Vec<Task>> {
    let one = (1..6_u64, prop::collection::vec(1..40_u64, 1..4), 1..40_u64);
    prop::collection::vec(one, 1..=count).prop_map(move |drawn| {
        let tasks = drawn.into_iter().zip(0..);
        tasks
            .map(|((periods, demands, runtime), number)| Task {
                period: periods * 16,
                phase: number,
                demands,
                server: with_servers.then_some((runtime.min(periods * 16), periods * 16)),
            })
            .collect()
    })
}

/// An overloaded CPU, where a budget that is refilled at once and a wakeup at the same instant lead
/// to one deadline: a refilled task stands first in line.
#[test]
fn a_refill_at_the_instant_of_a_wakeup_stands_before_it() {
    let task = |phase, period, demands: &[u64], runtime| Task {
        period,
        phase,
        demands: demands.to_vec(),
        server: Some((runtime, period)),
    };
    let set = [
        task(0, 32, &[22], 23),
        task(1, 32, &[6], 23),
        task(2, 80, &[8, 33], 26),
        task(3, 64, &[6], 20),
    ];
    let (twin, until) = tick_by_tick(Rule::Deadline, &set, 1, 6000);
    assert_eq!(event_by_event(Rule::Deadline, &set, 1, until), twin);
}

proptest! {
    #![proptest_config(crate::common::cases(300))]

    #[test]
    fn fixed_priorities_are_as_tick_by_tick(set in tasks(5, false), cpus in 1..4_usize) {
        let (twin, until) = tick_by_tick(Rule::Fixed, &set, cpus, 1500);
        prop_assert_eq!(event_by_event(Rule::Fixed, &set, cpus, until), twin);
    }

    #[test]
    fn deadlines_in_servers_are_as_tick_by_tick(set in tasks(5, true), cpus in 1..4_usize) {
        let (twin, until) = tick_by_tick(Rule::Deadline, &set, cpus, 1500);
        prop_assert_eq!(event_by_event(Rule::Deadline, &set, cpus, until), twin);
    }
}
