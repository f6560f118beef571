//! AQuoSA's experiment 1 and what its text says of it, in the simulated machine: the short task
//! alone, two tasks under `SCHED_RR`, under rate-monotonic priorities and under reservations; and
//! what a peak of the short task does to the long one.

use std::path::Path;

use onbeat_model::{Instant, Span};
use onbeat_sim::Workload;
use onbeat_sim::scenario::{Figures, Outputs, Run, parse};
use onbeat_sim::workload::{Arrival, Demand};
use serde::Serialize;
use serde_json::json;

use crate::machine::Machine;
use crate::results::{Ran, Table, publish};

const NAME: &str = "rate-monotonic";

/// What it is run with.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// The paper's tasks: a quarter of each period.
const SHORT: Span = Span::from_ms(10);
const LONG: Span = Span::from_ms(400);
/// For this second a job of the short task takes nearly its whole period.
const PEAK_FROM: Span = Span::from_secs(10);
const PEAK_UNTIL: Span = Span::from_secs(11);
const PEAK: Span = Span::from_us(9500);

/// How the two tasks are scheduled.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    short: &'static str,
    /// None: the long task does not run.
    long: Option<&'static str>,
}

const WAYS: [Way; 4] = [
    Way {
        name: "short task alone, SCHED_RR",
        short: "{ rr = 50 }",
        long: None,
    },
    Way {
        name: "SCHED_RR",
        short: "{ rr = 50 }",
        long: Some("{ rr = 50 }"),
    },
    Way {
        name: "rate-monotonic SCHED_FIFO",
        short: "{ fifo = 50 }",
        long: Some("{ fifo = 49 }"),
    },
    Way {
        name: "reservations of 27.5%",
        short: "{ deadline = { runtime = \"2750us\", period = \"10ms\" } }",
        long: Some("{ deadline = { runtime = \"110ms\", period = \"400ms\" } }"),
    },
];

/// One task's figures.
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

/// Runs all ways with and without the peak; publishes table and JSON.
pub(crate) fn run(machine: &Machine, _args: &Args) -> anyhow::Result<()> {
    let rows = rows()?;
    let ran = Ran::Computed("the simulated machine: one CPU, 60 s".to_owned());
    let paper = json!({
        "source": "AQuoSA, experiment 1",
        "longest_ms": {
            "alone": 3.183, "SCHED_RR": [75.470, 100.961], "reservations": [4.480, 126.346],
        },
    });
    publish(machine.out(), &ran, NAME, &table(&rows), &rows, paper)
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

fn row(way: &Way, peak: bool) -> anyhow::Result<Row> {
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

fn figures(way: &Way, peak: bool) -> anyhow::Result<Figures> {
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
    Ok(Run::new(&scenario).run(Outputs::default(), |_| {})?)
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "scheduled by",
        "a peak of the short task",
        "short: longest",
        "late jobs",
        "long: longest",
        "late jobs",
    ]);
    for row in rows {
        let longest = |served: Served| format!("{:.1} ms", served.longest_ms);
        let none = || "-".to_owned();
        table.row([
            row.way.to_owned(),
            if row.peak { "yes" } else { "no" }.to_owned(),
            longest(row.short),
            row.short.late.to_string(),
            row.long.map_or_else(none, longest),
            row.long.map_or_else(none, |long| long.late.to_string()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_table_of_priorities_is_of_todays_simulation() {
        crate::claims::assert_kept("rate-monotonic/rate-monotonic", "", &rows().unwrap());
    }

    #[test]
    fn a_peak_makes_the_long_task_late_by_priorities_and_not_by_reservations() {
        let late = |place: usize, peak| {
            let row = row(&WAYS[place], peak).unwrap();
            (row.short.late, row.long.unwrap().late)
        };
        assert_eq!(late(2, false), (0, 0));
        assert_eq!(late(3, false), (0, 0));
        assert!(late(2, true).1 > 0, "rate-monotonic priorities");
        let (short, long) = late(3, true);
        assert!(short > 0, "the task that overruns is late itself");
        assert_eq!(long, 0);
    }
}
