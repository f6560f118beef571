//! Small task sets, and what their jobs did.

use onbeat_model::{Instant, Reservation, Span, TaskId};
use onbeat_sim::observe::{Completion, Stretch};
use onbeat_sim::policy::linux::{Class, Config, DeadlineClass, Fixed, Linux, Order};
use onbeat_sim::workload::{Arrival, Demand};
use onbeat_sim::{Cpus, Machine, Observer, TaskIndex, Work, Workload};
use proptest::test_runner::{Config as ProptestConfig, RngSeed};

/// Keeps everything that ran, every completion, and every time a budget ran out.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) jobs: Vec<Completion>,
    pub(crate) exhausted: Vec<(TaskIndex, Instant)>,
}

impl Observer for Kept {
    fn ran(&mut self, stretch: &Stretch) {
        self.stretches.push(*stretch);
    }

    fn job(&mut self, job: &Completion) {
        self.jobs.push(*job);
    }

    fn exhausted(&mut self, task: TaskIndex, at: Instant) {
        self.exhausted.push((task, at));
    }
}

/// The number of cases, the same in each run.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    ProptestConfig {
        cases: count,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// A periodic task; times in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) period: u64,
    pub(crate) phase: u64,
    /// The demands of its jobs, over and over again.
    pub(crate) demands: Vec<u64>,
    /// Runtime and period of its server; without one, by what the test gives it.
    pub(crate) server: Option<(u64, u64)>,
}

impl Task {
    pub(crate) fn workload(&self) -> Workload {
        let demands = self.demands.iter();
        let arrival = Arrival::Periodic {
            period: Span::from_us(self.period),
            next: Instant::ZERO + Span::from_us(self.phase),
            jitter: Span::ZERO,
        };
        let demand = Demand::Recorded {
            demands: demands
                .map(|&us| Work::at_full_speed(Span::from_us(us)))
                .collect(),
            over: 0,
            repeat: true,
        };
        Workload::new(arrival, demand)
    }

    pub(crate) fn deadline_class(&self) -> Class {
        let (runtime, period) = self.server.unwrap_or((self.period, self.period));
        let reservation = Reservation::implicit(Span::from_us(runtime), Span::from_us(period));
        Class::Deadline(DeadlineClass::hard(reservation.unwrap()))
    }
}

pub(crate) fn fifo(priority: u8) -> Class {
    Class::Fixed(Fixed {
        priority,
        order: Order::Fifo,
    })
}

pub(crate) fn cpus(count: usize) -> Cpus {
    Cpus::of_one_speed(count)
}

pub(crate) fn us(instant: Instant) -> u64 {
    instant.as_ns() / 1000
}

/// Runs the tasks in these classes for `duration` microseconds.
pub(crate) fn simulate(
    config: Config,
    tasks: &[(Workload, Class, usize)],
    duration: u64,
) -> (Kept, Vec<Span>) {
    let count = config.domains.iter().flatten().count();
    let policy = Linux::new(
        config,
        tasks.iter().map(|&(_, class, domain)| (class, domain)),
    );
    let mut machine = Machine::new(&cpus(count), policy, Kept::default());
    for (number, (workload, ..)) in (0..).zip(tasks) {
        machine.add(TaskId::recorded(number), workload.clone());
    }
    machine.run_until(Instant::ZERO + Span::from_us(duration));
    let executed = (0..tasks.len())
        .map(|task| machine.executed(task))
        .collect();
    let (_, kept) = machine.finish();
    (kept, executed)
}
