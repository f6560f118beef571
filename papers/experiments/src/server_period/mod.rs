//! The cost of a server's period (LFS++, section 4, Fig. 1 and 2): the bandwidth that a task of 20
//! ms every 100 ms needs, from the supply-bound analysis and from a kernel in virtual time; and
//! what LFS allocates to one of 20 ms every 40 ms, with its response times.

mod guest;
mod lfs;
mod served;

use std::path::{Path, PathBuf};

use anyhow::Context;
use onbeat_model::Span;
use onbeat_sim::supply::least_runtime;
use serde::de::DeserializeOwned;

use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look, distribution};
use crate::results::{Table, or_dash, percent};
use crate::statistics::{mean, quantile};
use crate::vm::Guest;
use guest::{Lfs, Needed};
use served::Task;

const NAME: &str = "server-period";

#[derive(Debug, clap::Args)]
pub(crate) struct GuestArgs {
    /// Measure what Fig. 1's task needs, and write it to FILE
    #[arg(long, value_name = "FILE")]
    needed: Option<PathBuf>,
    /// Only as much of it as shows that analysis and kernel agree
    #[arg(long)]
    short: bool,
    /// Play Fig. 2's task under LFS, and write its jobs to FILE
    #[arg(long, value_name = "FILE")]
    lfs: Option<PathBuf>,
}

const FIG_1: Task = Task {
    execution: Span::from_ms(20),
    period: Span::from_ms(100),
};

const FIG_2: Task = Task {
    execution: Span::from_ms(20),
    period: Span::from_ms(40),
};

const SERVER_PERIODS_MS: [u64; 17] = [
    10, 20, 25, 30, 33, 36, 40, 45, 50, 55, 60, 75, 90, 100, 110, 150, 200,
];

/// The runtime that the task of Fig. 1 needs of a server with this period, by the analysis.
fn runtime_needed(server_period: Span) -> Span {
    // None would mean that not even a whole CPU serves it.
    least_runtime(FIG_1.execution, FIG_1.period, server_period).unwrap_or(server_period)
}

/// Fig. 1's curve, in ms and shares of the CPU, over server periods of 5 to 200 ms.
fn curve() -> Vec<(f64, f64)> {
    let periods = (50..=2000).map(|tenths| Span::from_us(tenths * 100));
    periods
        .map(|period| (period.as_ms_f64(), runtime_needed(period).ratio(period)))
        .collect()
}

pub(crate) fn in_guest(args: &GuestArgs) -> anyhow::Result<()> {
    if let Some(file) = &args.needed {
        guest::measure_needed(file, args.short)?;
    }
    match &args.lfs {
        Some(file) => guest::play_lfs(file),
        None => Ok(()),
    }
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let out = machine.out();
    let ended = Guest::new(NAME).boot(machine)?;
    let at_the_tick: Vec<Needed> = read(&ended.folder.join("tick.json"))?;
    let exactly: Vec<Needed> = read(&ended.folder.join("exact.json"))?;
    let lfs: Vec<Lfs> = read(&ended.folder.join("lfs.json"))?;
    fig_1(&at_the_tick, &exactly).draw(out, NAME)?;
    responses(&lfs).draw(out, "server-period-responses")?;
    allocated(&lfs).draw(out, "server-period-allocated")?;
    let ran = ended.ran(machine);
    machine.publish(&ran, NAME, &table(&at_the_tick, &exactly));
    machine.publish(&ran, &format!("{NAME}-lfs"), &lfs_table(&lfs));
    Ok(())
}

fn read<T: DeserializeOwned>(file: &Path) -> anyhow::Result<T> {
    let told = || format!("the guest left no {}", file.display());
    let text = std::fs::read_to_string(file).with_context(told)?;
    Ok(serde_json::from_str(&text)?)
}

fn table(at_the_tick: &[Needed], exactly: &[Needed]) -> Table {
    Table::of(SERVER_PERIODS_MS, |ms| {
        let runtime = runtime_needed(Span::from_ms(ms));
        let measured = |run: &[Needed]| {
            let at = run.iter().find(|needed| needed.server_period_ms == ms);
            or_dash(at, |needed| format!("{:.2} ms", needed.measured_ms))
        };
        [
            ("server period", format!("{ms} ms")),
            ("analysis", format!("{:.2} ms", runtime.as_ms_f64())),
            ("kernel, at the tick", measured(at_the_tick)),
            ("kernel, exactly", measured(exactly)),
            ("bandwidth", percent(runtime.ratio(Span::from_ms(ms)), 1)),
        ]
    })
}

fn lfs_table(lfs: &[Lfs]) -> Table {
    Table::of(lfs, |run| {
        let settled = run.settled();
        let responses: Vec<f64> = settled.iter().map(|job| job.response_ms).collect();
        let bandwidth: Vec<f64> = settled.iter().map(|job| job.bandwidth).collect();
        let in_time = responses
            .iter()
            .filter(|ms| **ms <= FIG_2.period.as_ms_f64());
        let ms = |p| format!("{:.1} ms", quantile(&responses, p));
        [
            ("server period", format!("{} ms", run.server_period_ms)),
            (
                "in time",
                percent(in_time.count() as f64 / settled.len().max(1) as f64, 0),
            ),
            ("response p50", ms(0.5)),
            ("p95", ms(0.95)),
            ("max", ms(1.0)),
            ("mean bandwidth", percent(mean(&bandwidth), 1)),
        ]
    })
}

/// The bandwidth needed over the server's period: the analysis, and each run in the guest.
fn fig_1(at_the_tick: &[Needed], exactly: &[Needed]) -> Figure {
    let points = |name, run: &[Needed]| {
        let point = |needed: &Needed| {
            let ms = needed.server_period_ms as f64;
            (ms, needed.measured_ms / ms)
        };
        Line::new(name, Look::Points, run.iter().map(point).collect())
    };
    Figure {
        title: "Bandwidth that 20 ms every 100 ms need".to_owned(),
        x: Axis::linear("server period (ms)", 0.0..210.0),
        y: Axis::linear("runtime / server period", 0.0..0.8),
        lines: vec![
            Line::new("analysis", Look::Straight, curve()),
            points("kernel, budgets enforced at the tick", at_the_tick),
            points("kernel, budgets enforced exactly", exactly),
        ],
        names: Corner::UpperLeft,
    }
}

fn responses(lfs: &[Lfs]) -> Figure {
    let line = |run: &Lfs| {
        let responses: Vec<f64> = run.settled().iter().map(|job| job.response_ms).collect();
        let name = format!("T = {} ms", run.server_period_ms);
        Line::new(&name, Look::Steps, distribution(&responses))
    };
    Figure {
        title: "Response times of 20 ms every 40 ms under LFS".to_owned(),
        x: Axis::linear("response time (ms)", 0.0..120.0),
        y: Axis::linear("share of jobs not longer", 0.0..1.0),
        lines: lfs.iter().map(line).collect(),
        names: Corner::LowerRight,
    }
}

/// LFS's bandwidth, job by job, for each server period (Fig. 2b).
fn allocated(lfs: &[Lfs]) -> Figure {
    let line = |run: &Lfs| {
        let jobs = run.jobs.iter().enumerate();
        let points = jobs.map(|(n, job)| (n as f64, job.bandwidth)).collect();
        Line::new(
            &format!("T = {} ms", run.server_period_ms),
            Look::Straight,
            points,
        )
    };
    Figure {
        title: "What LFS allocates to 20 ms every 40 ms".to_owned(),
        x: Axis::linear("job", 0.0..guest::LFS_JOBS as f64),
        y: Axis::linear("runtime / server period", 0.4..1.0),
        lines: lfs.iter().map(line).collect(),
        names: Corner::UpperRight,
    }
}
