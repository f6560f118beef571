//! AQuoSA's experiment 1 and what its text says of it, in the simulated machine: the short task
//! alone, two tasks under `SCHED_RR`, under rate-monotonic priorities and under reservations; what
//! a peak of the short task does to the long one; and the load that rate-monotonic priorities serve
//! in general.

use std::path::Path;

use onbeat_model::{Instant, Span};
use onbeat_sim::Workload;
use onbeat_sim::scenario::{Outputs, Scenario, ScenarioFigures, ScenarioRun, parse};
use onbeat_sim::workload::{Arrival, Demand};

use crate::machine::Machine;
use crate::results::{Ran, Table, or_dash, percent, yes_no};

const NAME: &str = "rate-monotonic";
const BOUND: &str = "rate-monotonic-bound";

/// The paper's tasks: a quarter of each period.
const SHORT: Span = Span::from_ms(10);
const LONG: Span = Span::from_ms(400);
/// For this second a job of the short task takes nearly its whole period.
const PEAK_FROM: Span = Span::from_secs(10);
const PEAK_UNTIL: Span = Span::from_secs(11);
const PEAK: Span = Span::from_us(9500);

const RR: &str = "{ rr = 50 }";

/// The name, and how the short task and the long one are scheduled; without that it does not run.
const WAYS: [(&str, &str, Option<&str>); 4] = [
    ("short task alone, SCHED_RR", RR, None),
    ("SCHED_RR", RR, Some(RR)),
    (
        "rate-monotonic SCHED_FIFO",
        "{ fifo = 50 }",
        Some("{ fifo = 49 }"),
    ),
    (
        "reservations of 27.5%",
        "{ deadline = { runtime = \"2750us\", period = \"10ms\" } }",
        Some("{ deadline = { runtime = \"110ms\", period = \"400ms\" } }"),
    ),
];

/// The tasks of the set that rate-monotonic priorities serve worst (Liu and Layland 1973): the
/// periods grow by one factor to twice the first, and each task takes as much of the CPU.
/// Priorities serve 10 (2^(1/10) - 1) = 71.8% of it; with many tasks ln 2, the paper's 69%.
const TASKS: i32 = 10;
/// The loads that are tried, each with the demands of that set enlarged or reduced alike.
const LOADS: [f64; 4] = [0.71, 0.725, 0.80, 0.90];
const SPREAD: f64 = 1.03;

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let ran = Ran::computed(machine, "simulated, one CPU, 60 s");
    let mut rows = Vec::new();
    for peak in [false, true] {
        for (name, short, long) in WAYS {
            if long.is_some() || !peak {
                rows.push((name, peak, two_tasks(short, long, peak)?));
            }
        }
    }
    let table = Table::of(&rows, |(name, peak, figures)| {
        let mut tasks = figures.tasks.iter();
        let mut served = || {
            let task = tasks.next()?;
            let longest = task.response_time?.max_ns.as_ms_f64();
            Some((format!("{longest:.1} ms"), task.missed.to_string()))
        };
        let [short, long] = [served(), served()];
        [
            ("scheduled by", (*name).to_owned()),
            ("a peak of the short task", yes_no(*peak)),
            (
                "short: longest",
                or_dash(short.as_ref(), |short| short.0.clone()),
            ),
            ("late jobs", or_dash(short, |short| short.1)),
            (
                "long: longest",
                or_dash(long.as_ref(), |long| long.0.clone()),
            ),
            ("late jobs", or_dash(long, |long| long.1)),
        ]
    });
    machine.publish(&ran, NAME, &table);
    let mut rows = Vec::new();
    for load in LOADS {
        let prioritised = crowd(load, |n, _, _| format!("{{ fifo = {} }}", 50 - n))?;
        let reserved = crowd(load, |_, period_us, demand_us| {
            let runtime_us = scaled(demand_us, SPREAD);
            format!(
                "{{ deadline = {{ runtime = \"{runtime_us}us\", period = \"{period_us}us\" }} }}"
            )
        })?;
        rows.push((load, prioritised, reserved));
    }
    let bound = Table::of(&rows, |(load, prioritised, reserved)| {
        let late = |figures: &ScenarioFigures| -> String {
            let late: u64 = figures.tasks.iter().map(|task| task.missed).sum();
            late.to_string()
        };
        let jobs: u64 = prioritised.tasks.iter().map(|task| task.jobs).sum();
        [
            ("load", percent(*load, 1)),
            ("jobs", jobs.to_string()),
            ("late by priorities", late(prioritised)),
            ("late under reservations", late(reserved)),
        ]
    });
    machine.publish(&ran, BOUND, &bound);
    Ok(())
}

fn task(name: &str, period_us: u64, demand_us: u64, class: &str) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\narrival = {{ periodic = \"{period_us}us\" }}\n\
         demand = {{ constant = \"{demand_us}us\" }}\nscheduling = {class}\n"
    )
}

fn scenario(tasks: &str) -> anyhow::Result<Scenario> {
    Ok(parse(
        &format!("duration = \"60s\"\n{tasks}"),
        Path::new(NAME),
    )?)
}

fn simulated(scenario: &Scenario) -> anyhow::Result<ScenarioFigures> {
    Ok(ScenarioRun::new(scenario).run(Outputs::default(), |_| {})?)
}

/// Runs the set at a load; `class` gives a task's scheduling by its number, period and demand.
fn crowd(load: f64, class: impl Fn(i32, u64, u64) -> String) -> anyhow::Result<ScenarioFigures> {
    let of_number = |n: i32| {
        let period_us = scaled(10_000, 2_f64.powf(f64::from(n) / f64::from(TASKS)));
        let demand_us = scaled(period_us, load / f64::from(TASKS));
        task(
            &n.to_string(),
            period_us,
            demand_us,
            &class(n, period_us, demand_us),
        )
    };
    simulated(&scenario(&(0..TASKS).map(of_number).collect::<String>())?)
}

fn scaled(us: u64, by: f64) -> u64 {
    (us as f64 * by).round() as u64
}

fn two_tasks(short: &str, long: Option<&str>, peak: bool) -> anyhow::Result<ScenarioFigures> {
    let quarter = |name, period: Span, class| {
        let us = period.as_ns() / 1000;
        task(name, us, us / 4, class)
    };
    let long = long.map(|class| quarter("long", LONG, class));
    let mut scenario = scenario(&(quarter("short", SHORT, short) + &long.unwrap_or_default()))?;
    if peak && let Some(short) = scenario.groups.first_mut() {
        let from = |at: Span, demand| {
            let arrival = Arrival::Periodic {
                period: SHORT,
                next: Instant::ZERO + at,
                jitter: Span::ZERO,
            };
            Workload::new(arrival, Demand::constant(demand))
        };
        let after = from(PEAK_UNTIL, SHORT / 4);
        let during = from(PEAK_FROM, PEAK).then(Instant::ZERO + PEAK_UNTIL - SHORT, after);
        short.workload =
            from(Span::ZERO, SHORT / 4).then(Instant::ZERO + PEAK_FROM - SHORT, during);
    }
    simulated(&scenario)
}
