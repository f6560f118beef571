//! From a program's start to its reservation: at most 10 jobs or 0.5 s, the longer.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::machine::{Hogs, Machine, Onbeat, compile};
use crate::results::{Ran, Table};
use crate::statistics::quantile;

const NAME: &str = "lock-time";
/// How often a program of each period is started, with hogs and without.
const STARTS: usize = 10;
const HOGS: usize = 4;
/// The periods of LFS++'s Table I, and that of a film.
const PERIODS_US: [u64; 4] = [3505, 8220, 40_000, 100_000];
const LOAD: f64 = 0.2;

/// The limit for a lock in time: 10 jobs or 0.5 s, the longer.
fn limit_s(period_us: u64) -> f64 {
    (10.0 * period_us as f64 / 1e6).max(0.5)
}

/// The period and the hogs, and after how many seconds those that were reserved were.
type Starts = (u64, usize, Vec<f64>);

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    machine.need_root()?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let program = compile("workloads/rates.c", [], folder.path())?;
    let mut all = Vec::new();
    for hogs in [0, HOGS] {
        let _hogs = Hogs::start(machine, hogs)?;
        for period_us in PERIODS_US {
            println!("period {period_us} us, {hogs} hogs: {STARTS} starts ...");
            let starts = (0..STARTS).map(|_| reserved_after(machine, &program, period_us));
            let starts = starts.collect::<anyhow::Result<Vec<_>>>()?;
            let seconds = starts.into_iter().flatten().collect();
            all.push((period_us, hogs, seconds));
        }
    }
    machine.publish(&Ran::live(machine), NAME, &table(&all));
    Ok(())
}

/// In seconds; none if it got no reservation.
fn reserved_after(
    machine: &Machine,
    program: &std::path::Path,
    period_us: u64,
) -> anyhow::Result<Option<f64>> {
    let seconds = if period_us > 50_000 { 4 } else { 2 };
    let onbeat = Onbeat::new(machine, NAME)?;
    let mut command = onbeat.run([""; 0], program);
    let rate = format!("{period_us}:{}", (period_us as f64 * LOAD) as u64);
    // Its rate changes when it is over.
    command
        .arg(machine.file("lock-time.jobs"))
        .arg("until")
        .args([seconds * 1000, seconds].map(|number| number.to_string()))
        .args([&rate, &rate])
        .stdout(Stdio::null());
    let messages = machine.file("lock-time.stderr");
    if !machine.run(command, &messages, Duration::from_secs(10 * seconds + 30))? {
        bail!("rates failed: see {}", messages.display());
    }
    let threads = onbeat.threads()?;
    let after_ns = threads.iter().find_map(|thread| thread.reserved_after_ns);
    Ok(after_ns.map(|ns| ns as f64 / 1e9))
}

fn table(all: &[Starts]) -> Table {
    Table::of(all, |(period_us, hogs, seconds)| {
        let jobs = |s: f64| format!("{:.0} jobs", s * 1e6 / *period_us as f64);
        let (p50, max) = (quantile(seconds, 0.5), quantile(seconds, 1.0));
        let in_time = seconds.iter().filter(|s| **s <= limit_s(*period_us));
        [
            ("period", format!("{} ms", *period_us as f64 / 1000.0)),
            ("hogs", hogs.to_string()),
            ("starts", STARTS.to_string()),
            ("reserved", seconds.len().to_string()),
            ("in time", in_time.count().to_string()),
            ("limit", format!("{:.1} s", limit_s(*period_us))),
            ("p50", format!("{p50:.3} s")),
            ("max", format!("{max:.3} s")),
            ("p50", jobs(p50)),
            ("max", jobs(max)),
        ]
    })
}
