//! How many jobs a second one core simulates: ten tasks in servers on one CPU, and ten thousand on
//! 64.

use criterion::{Criterion, Throughput};
use onbeat_model::{Instant, Ladder, Reservation, Span, Speed, TaskId};
use onbeat_sim::policy::linux::{Class, Config, DeadlineClass, Linux};
use onbeat_sim::workload::{Arrival, Demand};
use onbeat_sim::{Costs, Cpus, Machine, Workload};

/// `tasks` of up to 9% (of `cpus` tenths) each, whose demands vary around 80% of their budgets.
fn machine(tasks: u64, cpus: usize) -> Machine<Linux> {
    let budget = |period: Span| period.scale(0.9 * cpus as f64 / tasks as f64);
    let period = |task: u64| Span::from_us(5_000 + 997 * (task % 37));
    let classes = (0..tasks).map(|task| {
        let reservation = Reservation::implicit(budget(period(task)), period(task));
        let reservation = reservation.unwrap_or_else(|error| panic!("{error}"));
        (Class::Deadline(DeadlineClass::hard(reservation)), 0)
    });
    let policy = Linux::new(Config::global(cpus), classes);
    let machine = Cpus {
        count: cpus,
        speeds: Ladder::new(Speed::from_khz(1_000_000)).unwrap_or_else(|| panic!("a speed")),
        continuous: false,
        limit: None,
        costs: Costs::default(),
    };
    let mut machine = Machine::new(&machine, policy, ());
    for (number, task) in (0..).zip(0..tasks) {
        let budget = budget(period(task));
        let demand = Demand::Normal {
            mean: budget.scale(0.8),
            deviation: budget.scale(0.1),
            most: budget.scale(1.5),
        };
        let workload = Workload::new(Arrival::periodic(period(task)), demand).seeded(1, task);
        machine.add(TaskId::recorded(number), workload);
    }
    machine
}

fn jobs(criterion: &mut Criterion) {
    for (name, tasks, cpus, ms) in [
        ("ten tasks on one CPU", 10, 1, 10_000),
        ("ten thousand tasks on 64 CPUs", 10_000, 64, 200),
    ] {
        let until = Instant::ZERO + Span::from_ms(ms);
        let run = || {
            let mut machine = machine(tasks, cpus);
            machine.run_until(until);
            machine.jobs_done()
        };
        let mut group = criterion.benchmark_group("jobs");
        group.sample_size(20);
        group.throughput(Throughput::Elements(run()));
        group.bench_function(name, |bencher| bencher.iter(run));
        group.finish();
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    jobs(&mut criterion);
    criterion.final_summary();
}
