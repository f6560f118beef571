//! AQuoSA's experiment 1 and what its text says of it, in the simulated machine: the short task
//! alone, two tasks under `SCHED_RR`, under rate-monotonic priorities and under reservations; what
//! a peak of the short task does to the long one; and the load that rate-monotonic priorities serve
//! in general.

use std::path::Path;

use onbeat_model::{Instant, Span};
use onbeat_sim::Workload;
use onbeat_sim::scenario::{Outputs, ScenarioFigures, ScenarioRun, parse};
use onbeat_sim::workload::{Arrival, Demand};
use serde::Serialize;

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

#[derive(Clone, Copy)]
struct TaskWay {
    name: &'static str,
    short: &'static str,
    /// None: the long task does not run.
    long: Option<&'static str>,
}

const WAYS: [TaskWay; 4] = [
    TaskWay {
        name: "short task alone, SCHED_RR",
        short: "{ rr = 50 }",
        long: None,
    },
    TaskWay {
        name: "SCHED_RR",
        short: "{ rr = 50 }",
        long: Some("{ rr = 50 }"),
    },
    TaskWay {
        name: "rate-monotonic SCHED_FIFO",
        short: "{ fifo = 50 }",
        long: Some("{ fifo = 49 }"),
    },
    TaskWay {
        name: "reservations of 27.5%",
        short: "{ deadline = { runtime = \"2750us\", period = \"10ms\" } }",
        long: Some("{ deadline = { runtime = \"110ms\", period = \"400ms\" } }"),
    },
];

/// The tasks of the set that rate-monotonic priorities serve worst (Liu and Layland 1973): the
/// periods grow by one factor to twice the first, and each task takes as much of the CPU.
/// Priorities serve 10 (2^(1/10) - 1) = 71.8% of it; with many tasks ln 2, the paper's 69%.
const TASKS: i32 = 10;
/// The loads that are tried, each with the demands of that set enlarged or reduced alike.
const LOADS: [f64; 4] = [0.71, 0.725, 0.80, 0.90];
const SPREAD: f64 = 1.03;

#[derive(Clone, Copy, Debug, Serialize)]
struct Served {
    longest_ms: f64,
    late: u64,
}

#[derive(Debug, Serialize)]
struct Row {
    way: &'static str,
    peak: bool,
    short: Served,
    long: Option<Served>,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let rows = rows()?;
    let ran = Ran::computed(machine, "simulated, one CPU, 60 s");
    machine.publish(&ran, NAME, &table(&rows), &rows)?;
    let bound = LOADS
        .map(loaded)
        .into_iter()
        .collect::<anyhow::Result<Vec<_>>>()?;
    machine.publish(&ran, BOUND, &bound_table(&bound), &bound)
}

#[derive(Debug, Serialize)]
struct LateByLoad {
    load: f64,
    jobs: u64,
    late_by_priority: u64,
    late_reserved: u64,
}

fn loaded(load: f64) -> anyhow::Result<LateByLoad> {
    let prioritised = crowd(load, |n, _, _| format!("{{ fifo = {} }}", 50 - n))?;
    let reserved = crowd(load, |_, period_us, demand_us| {
        let runtime_us = scaled(demand_us, SPREAD);
        format!("{{ deadline = {{ runtime = \"{runtime_us}us\", period = \"{period_us}us\" }} }}")
    })?;
    let late = |figures: &ScenarioFigures| figures.tasks.iter().map(|task| task.missed).sum();
    Ok(LateByLoad {
        load,
        jobs: prioritised.tasks.iter().map(|task| task.jobs).sum(),
        late_by_priority: late(&prioritised),
        late_reserved: late(&reserved),
    })
}

/// Runs the set at a load; `class` gives a task's scheduling by its number, period and demand.
fn crowd(load: f64, class: impl Fn(i32, u64, u64) -> String) -> anyhow::Result<ScenarioFigures> {
    let mut text = "duration = \"60s\"\n".to_owned();
    for n in 0..TASKS {
        let period_us = scaled(10_000, 2_f64.powf(f64::from(n) / f64::from(TASKS)));
        let demand_us = scaled(period_us, load / f64::from(TASKS));
        text.push_str(&format!(
            "[[task]]\nname = \"{n}\"\narrival = {{ periodic = \"{period_us}us\" }}\n\
             demand = {{ constant = \"{demand_us}us\" }}\nscheduling = {}\n",
            class(n, period_us, demand_us)
        ));
    }
    let scenario = parse(&text, Path::new(BOUND))?;
    Ok(ScenarioRun::new(&scenario).run(Outputs::default(), |_| {})?)
}

fn scaled(us: u64, by: f64) -> u64 {
    (us as f64 * by).round() as u64
}

fn bound_table(rows: &[LateByLoad]) -> Table {
    Table::of(rows, |row| {
        [
            ("load", percent(row.load, 1)),
            ("jobs", row.jobs.to_string()),
            ("late by priorities", row.late_by_priority.to_string()),
            ("late under reservations", row.late_reserved.to_string()),
        ]
    })
}

fn rows() -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for peak in [false, true] {
        for way in WAYS.iter().filter(|way| way.long.is_some() || !peak) {
            rows.push(row(way, peak)?);
        }
    }
    Ok(rows)
}

fn row(way: &TaskWay, peak: bool) -> anyhow::Result<Row> {
    let figures = figures(way, peak)?;
    let of = |name: &str| {
        let task = figures.tasks.iter().find(|task| task.name == name)?;
        Some(Served {
            longest_ms: task.response_time?.max_ns.as_ms_f64(),
            late: task.missed,
        })
    };
    Ok(Row {
        way: way.name,
        peak,
        short: of("short").unwrap_or(Served {
            longest_ms: 0.0,
            late: 0,
        }),
        long: of("long"),
    })
}

fn figures(way: &TaskWay, peak: bool) -> anyhow::Result<ScenarioFigures> {
    let task = |name: &str, period: Span, class: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\narrival = {{ periodic = \"{period}\" }}\n\
             demand = {{ constant = \"{}\" }}\nscheduling = {class}\n",
            period / 4
        )
    };
    let mut text = format!("duration = \"60s\"\n{}", task("short", SHORT, way.short));
    if let Some(class) = way.long {
        text.push_str(&task("long", LONG, class));
    }
    let mut scenario = parse(&text, Path::new(NAME))?;
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
    Ok(ScenarioRun::new(&scenario).run(Outputs::default(), |_| {})?)
}

fn table(rows: &[Row]) -> Table {
    Table::of(rows, |row| {
        let longest = |served: Served| format!("{:.1} ms", served.longest_ms);
        [
            ("scheduled by", row.way.to_owned()),
            ("a peak of the short task", yes_no(row.peak)),
            ("short: longest", longest(row.short)),
            ("late jobs", row.short.late.to_string()),
            ("long: longest", or_dash(row.long, longest)),
            ("late jobs", or_dash(row.long, |long| long.late.to_string())),
        ]
    })
}
