//! The three tasks of LFS++'s Table I beside CPU hogs: under the kernel's default scheduler, under
//! onbeat, and under reservations set by hand by somebody who knows periods and execution times.

use std::process::Command;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use crate::machine::{Machine, Onbeat};
use crate::results::{Ran, Table, publish};
use crate::rt_app::{Calibration, Jobs, RtApp, Task, Used};

/// What it is run with.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For how long the tasks run in each way
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(5..=3600))]
    seconds: u64,
    /// The begin that is left out of all figures: time to find the periods
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    leave_out: u64,
    /// CPU hogs in all
    #[arg(long, value_name = "N", default_value_t = 4)]
    hogs: usize,
    /// When the hogs start: so long after the tasks, or before them if 0, which starves the tasks
    /// from their first job on
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    hogs_after: u64,
    /// By how much the reservations set by hand exceed the nominal execution times
    #[arg(long, value_name = "X", default_value_t = 0.15)]
    hand_spread: f64,
    /// A further option for `onbeat run`, as in --option=--reclaim; may be given several times
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,
}

/// LFS++, Table I: name, period and load.
const TABLE_ONE: [(&str, u64, f64); 3] = [
    ("short", 3505, 0.30),
    ("middle", 8220, 0.28),
    ("long", 100_000, 0.21),
];

/// How the tasks are scheduled.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Default,
    Onbeat,
    HandSet,
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Default => "default scheduler",
            Self::Onbeat => "onbeat",
            Self::HandSet => "set by hand",
        }
    }
}

/// The figures of one task in one run.
#[derive(Debug, Serialize)]
struct Figures {
    run: &'static str,
    task: String,
    period_us: u64,
    jobs: Jobs,
    missed_share: f64,
    used: f64,
    reserved: Option<f64>,
    reserved_over_used: Option<f64>,
    changes: Option<u64>,
    exhaustions: Option<u64>,
}

/// Runs the tasks in all ways, and publishes table and JSON.
pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    machine.need_root()?;
    let facts = machine.facts();
    println!("measuring rt-app's busy loop ...");
    let calibration = Calibration::measure(machine)?;
    let ways = [Way::Default, Way::HandSet, Way::Onbeat];
    let mut figures = Vec::new();
    for (n, way) in (1..).zip(ways) {
        println!(
            "[{n}/{}] {}, beside {} hogs: {} s ...",
            ways.len(),
            way.name(),
            args.hogs,
            args.seconds
        );
        figures.extend(run_in(machine, args, calibration, way)?);
    }
    let paper = json!({
        "table": "LFS++, Table I and Fig. 6 (Core 2 Duo P9600, no hogs, 80% load)",
        "missed_share_of_the_shortest": { "Linux": 0.43, "LFS++": 0.05 },
    });
    publish(
        machine.out(),
        &Ran::Live(facts),
        "three-rt-apps",
        &table(&figures),
        &figures,
        paper,
    )
}

fn tasks(args: &Args, way: Way) -> Vec<Task> {
    TABLE_ONE
        .into_iter()
        .map(|(name, period_us, load)| {
            let run_us = period_us as f64 * load;
            let by_hand = (run_us * (1.0 + args.hand_spread)).round() as u64;
            Task {
                name,
                period_us,
                run_us: run_us.round() as u64,
                instances: 1,
                reserved_us: (way == Way::HandSet).then_some(by_hand),
            }
        })
        .collect()
}

fn run_in(
    machine: &Machine,
    args: &Args,
    calibration: Calibration,
    way: Way,
) -> anyhow::Result<Vec<Figures>> {
    let tasks = tasks(args, way);
    let time = Duration::from_secs(args.seconds);
    let leave_out = Duration::from_secs(args.leave_out);
    let rt_app = RtApp::new(&tasks, calibration, time)?;
    let onbeat = Onbeat::new(machine, "three-rt-apps")?;
    let hogs = (args.hogs, Duration::from_secs(args.hogs_after));
    let command = if way == Way::Onbeat {
        let mut options = vec!["--quiet".to_owned()];
        options.extend(args.options.iter().cloned());
        onbeat.run(&options, "rt-app")
    } else {
        Command::new("rt-app")
    };
    let used = rt_app.run(machine, command, hogs, leave_out)?;
    let mut figures = Vec::new();
    for task in &tasks {
        figures.push(of_task(task, way, &rt_app, leave_out, &used, &onbeat)?);
    }
    for figure in &figures {
        println!(
            "      {}: {:.2}% of {} jobs late",
            figure.task,
            figure.missed_share * 100.0,
            figure.jobs.jobs
        );
    }
    Ok(figures)
}

fn of_task(
    task: &Task,
    way: Way,
    rt_app: &RtApp,
    leave_out: Duration,
    used: &Used,
    onbeat: &Onbeat,
) -> anyhow::Result<Figures> {
    let jobs = rt_app.log(task.name)?.jobs(leave_out.as_secs_f64());
    let seen_used = used
        .iter()
        .find(|(name, _)| name.starts_with(task.name))
        .map_or(0.0, |(_, used)| *used);
    let seen = match way {
        Way::Onbeat => onbeat
            .threads()?
            .into_iter()
            .find(|thread| thread.comm.starts_with(task.name)),
        _ => None,
    };
    let by_hand = task
        .reserved_us
        .map(|runtime_us| runtime_us as f64 / task.period_us as f64);
    let reserved = seen.as_ref().map(|t| t.bandwidth_reserved).or(by_hand);
    let used = seen.as_ref().map_or(seen_used, |t| t.bandwidth_used);
    Ok(Figures {
        run: way.name(),
        task: task.name.to_owned(),
        period_us: task.period_us,
        missed_share: jobs.miss_ratio(),
        jobs,
        used,
        reserved,
        reserved_over_used: reserved.map(|reserved| reserved / used.max(1e-9)),
        changes: seen.as_ref().map(|t| t.changes),
        exhaustions: seen.as_ref().map(|t| t.exhaustions),
    })
}

fn table(figures: &[Figures]) -> Table {
    let mut table = Table::new([
        "run", "task", "period", "jobs", "late", "p50", "p99", "used", "reserved", "ratio",
        "changes",
    ]);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    for f in figures {
        table.row([
            f.run.to_owned(),
            f.task.clone(),
            format!("{:.3} ms", f.period_us as f64 / 1000.0),
            f.jobs.jobs.to_string(),
            format!("{:.2}%", f.missed_share * 100.0),
            format!("{:.2} ms", f.jobs.response_p50_ms),
            format!("{:.2} ms", f.jobs.response_p99_ms),
            format!("{:.1}%", f.used * 100.0),
            or_dash(f.reserved.map(|r| format!("{:.1}%", r * 100.0))),
            or_dash(f.reserved_over_used.map(|r| format!("{r:.2}"))),
            or_dash(f.changes.map(|n| n.to_string())),
        ]);
    }
    table
}
