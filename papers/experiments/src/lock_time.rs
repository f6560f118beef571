//! From a program's start to its reservation: at most 10 jobs or 0.5 s, the longer.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use crate::machine::{Hogs, Machine, Onbeat};
use crate::results::{Ran, Table, quantile};
use crate::rt_app::{Calibration, RtApp, RtAppTask};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often a program of each period is started, with hogs and without
    #[arg(long, value_name = "N", default_value_t = 10)]
    starts: usize,
    /// CPU hogs in the runs with hogs
    #[arg(long, value_name = "N", default_value_t = 4)]
    hogs: usize,
}

/// The limit for a lock in time: 10 jobs or 0.5 s, the longer.
fn limit_s(period_us: u64) -> f64 {
    (10.0 * period_us as f64 / 1e6).max(0.5)
}

/// The periods of LFS++'s Table I, and that of a film.
const PERIODS_US: [u64; 4] = [3505, 8220, 40_000, 100_000];

const LOAD: f64 = 0.2;

#[derive(Debug, Serialize)]
struct Figures {
    period_us: u64,
    hogs: usize,
    starts: usize,
    reserved: usize,
    in_time: usize,
    seconds: Vec<f64>,
}

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    machine.need_root()?;
    let facts = machine.facts();
    println!("measuring rt-app's busy loop ...");
    let calibration = Calibration::measure(machine)?;
    let mut figures = Vec::new();
    for hogs in [0, args.hogs] {
        for period_us in PERIODS_US {
            println!(
                "period {} ms, {hogs} hogs: {} starts ...",
                period_us as f64 / 1000.0,
                args.starts
            );
            figures.push(starts(machine, args.starts, hogs, period_us, calibration)?);
        }
    }
    let paper = json!({
        "section": "LFS++, 7.6: the period is indisputable after 1 s of tracing, at 32.5 Hz",
        "wanted": "10 jobs or 0.5 s, the longer",
    });
    machine.publish(
        &Ran::Live(facts),
        "lock-time",
        &table(&figures),
        &figures,
        paper,
    )
}

fn starts(
    machine: &Machine,
    starts: usize,
    hogs: usize,
    period_us: u64,
    calibration: Calibration,
) -> anyhow::Result<Figures> {
    let task = RtAppTask {
        name: "locked",
        period_us,
        run_us: (period_us as f64 * LOAD) as u64,
        reserved_us: None,
    };
    let time = Duration::from_secs(if period_us > 50_000 { 4 } else { 2 });
    let _hogs = Hogs::start(machine, hogs)?;
    let mut seconds = Vec::new();
    for _ in 0..starts {
        let rt_app = RtApp::new(std::slice::from_ref(&task), calibration, time)?;
        let onbeat = Onbeat::new(machine, "lock-time")?;
        let command = onbeat.run([""; 0], "rt-app");
        // The hogs run throughout, not anew for each start.
        rt_app.run(machine, command, (0, Duration::ZERO), Duration::ZERO)?;
        let after_ns = onbeat
            .threads()?
            .into_iter()
            .find(|thread| thread.comm.starts_with(task.name))
            .and_then(|thread| thread.reserved_after_ns);
        seconds.extend(after_ns.map(|ns| ns as f64 / 1e9));
    }
    let limit = limit_s(period_us);
    Ok(Figures {
        period_us,
        hogs,
        starts,
        reserved: seconds.len(),
        in_time: seconds.iter().filter(|s| **s <= limit).count(),
        seconds,
    })
}

fn table(figures: &[Figures]) -> Table {
    Table::of(figures, |f| {
        let jobs = |s: f64| format!("{:.0} jobs", s * 1e6 / f.period_us as f64);
        let (p50, max) = (quantile(&f.seconds, 0.5), quantile(&f.seconds, 1.0));
        [
            ("period", format!("{} ms", f.period_us as f64 / 1000.0)),
            ("hogs", f.hogs.to_string()),
            ("starts", f.starts.to_string()),
            ("reserved", f.reserved.to_string()),
            ("in time", f.in_time.to_string()),
            ("limit", format!("{:.1} s", limit_s(f.period_us))),
            ("p50", format!("{p50:.3} s")),
            ("max", format!("{max:.3} s")),
            ("p50", jobs(p50)),
            ("max", jobs(max)),
        ]
    })
}
