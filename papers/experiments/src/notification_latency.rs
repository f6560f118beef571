//! How late libonbeat notifies a violation: section 7 of the timing exceptions' paper, Fig. 3 to 6.
//!
//! The samples are taken by `libonbeat/bench/samples.c`, in the Linux and in the portable form.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;

use crate::machine::{Machine, Program};
use crate::plot::{Axis, Corner, Figure, Line, Look, distribution};
use crate::results::{Ran, Table};
use crate::statistics::{Spread, quantile};

const NAME: &str = "notification-latency";
/// How long each source is sampled under each policy and load; there are 48 of these.
const SECONDS: f64 = 30.0;

/// The paper's Table 1: tasks that compute, tasks that write memory.
const LOADS: [(usize, usize); 4] = [(0, 0), (1, 1), (4, 1), (8, 2)];
/// The paper's three; its cbs is SCHED_DEADLINE's predecessor.
const POLICIES: [&str; 3] = ["other", "fifo", "deadline"];
/// The sources that notify: libonbeat's form, and what its program for samples calls the
/// constraint.
const SOURCES: [(&str, &str, &str); 4] = [
    ("deadline", "linux", "deadline"),
    ("deadline, portable form", "posix", "deadline"),
    ("execution time, perf's clock", "linux", "wcet"),
    ("execution time, CPU-time timer", "linux", "wcet-by-timer"),
];
/// From 0.5 to 100 ms, as the paper; fewer of them, for a shorter run.
const LIMITS_US: [u64; 10] = [
    500, 1000, 2000, 5000, 10_000, 20_000, 35_000, 50_000, 75_000, 100_000,
];

#[derive(Debug, Serialize)]
struct LatencyCell {
    source: &'static str,
    policy: &'static str,
    load_tasks: usize,
    samples: usize,
    mean_us: f64,
    deviation_us: f64,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
    by_limit: Vec<OfLimit>,
    #[serde(skip)]
    delays_us: Vec<f64>,
}

#[derive(Debug, Serialize)]
struct OfLimit {
    limit_ms: f64,
    samples: usize,
    mean_us: f64,
    deviation_us: f64,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    machine.need_root()?;
    let [linux, posix] = [build("linux")?, build("posix")?];
    let all = LOADS.len() * POLICIES.len() * SOURCES.len();
    let mut cells: Vec<LatencyCell> = Vec::with_capacity(all);
    for load in LOADS {
        let _load = start_load(machine, load)?;
        for (source, form, constraint) in SOURCES {
            for policy in POLICIES {
                let done = cells.len();
                println!(
                    "{done} of {all}: {source}, {policy}, load {}",
                    load.0 + load.1
                );
                let mut command = Command::new(if form == "linux" { &linux } else { &posix });
                command.args([constraint, policy, &SECONDS.to_string()]);
                command.args(LIMITS_US.map(|us| us.to_string()));
                let samples = sample(machine, command)?;
                cells.push(cell(source, policy, load.0 + load.1, &samples));
            }
        }
    }
    draw(machine.out(), &cells)?;
    machine.publish(&Ran::live(machine), NAME, &table(&cells), &cells)
}

/// Builds libonbeat in one of its forms, with the program that takes samples.
fn build(form: &str) -> anyhow::Result<PathBuf> {
    let libonbeat = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../libonbeat");
    let program = format!("build/{form}-release/bench-samples");
    let status = Command::new("make")
        .args(["--no-print-directory", "--silent", "-C"])
        .arg(&libonbeat)
        .args([&format!("NOTIFY={form}"), &program])
        .stdout(Stdio::null())
        .status()
        .context("cannot start make: is it installed?")?;
    if !status.success() {
        bail!("libonbeat does not build: run make -C libonbeat NOTIFY={form}");
    }
    Ok(libonbeat.join(program))
}

/// As many stress-ng workers as the paper's stress had; nothing for none.
fn start_load(machine: &Machine, load: (usize, usize)) -> anyhow::Result<Option<Program>> {
    if load == (0, 0) {
        return Ok(None);
    }
    let mut command = Command::new("stress-ng");
    command.args(["--quiet", "--vm-bytes", "64M", "--cpu", &load.0.to_string()]);
    command.args(["--vm", &load.1.to_string()]);
    command.stdout(Stdio::null());
    let program = Program::start(command, &machine.file("notification-latency.stderr"))?;
    machine.wait(Duration::from_secs(1))?;
    Ok(Some(program))
}

/// Runs the program for samples: (limit, delay) of each, in nanoseconds.
fn sample(machine: &Machine, mut command: Command) -> anyhow::Result<Vec<(f64, f64)>> {
    let samples = machine.file("notification-latency.samples");
    let messages = machine.file("notification-latency.stderr");
    let file = fs::File::create(&samples)
        .with_context(|| format!("cannot write {}", samples.display()))?;
    command.stdout(file);
    // The last block may have begun just before the time was over, on a CPU that it shares with
    // ten.
    let patience = Duration::from_secs_f64(SECONDS + 60.0);
    let begin = Instant::now();
    if !machine.run(command, &messages, patience)? {
        bail!(
            "no samples after {:.0} s: {}",
            begin.elapsed().as_secs_f64(),
            fs::read_to_string(&messages).unwrap_or_default().trim()
        );
    }
    let text = fs::read_to_string(&samples)?;
    fs::remove_file(&samples)?;
    let parsed = text.lines().map(|line| {
        let (limit, delay) = line.split_once(' ')?;
        Some((limit.parse().ok()?, delay.parse().ok()?))
    });
    parsed
        .collect::<Option<_>>()
        .context("samples that are no numbers")
}

fn cell(
    source: &'static str,
    policy: &'static str,
    load_tasks: usize,
    samples: &[(f64, f64)],
) -> LatencyCell {
    let delays_us: Vec<f64> = samples.iter().map(|(_, delay)| delay / 1e3).collect();
    let delay = Spread::of_all(&delays_us);
    let mut limits_ns: Vec<f64> = samples.iter().map(|(limit, _)| *limit).collect();
    limits_ns.sort_by(f64::total_cmp);
    limits_ns.dedup();
    let by_limit = limits_ns.into_iter().map(|limit_ns| {
        let of_it = samples.iter().filter(|(limit, _)| *limit == limit_ns);
        let delays_us: Vec<f64> = of_it.map(|(_, delay)| delay / 1e3).collect();
        let delay = Spread::of_all(&delays_us);
        OfLimit {
            limit_ms: limit_ns / 1e6,
            samples: delays_us.len(),
            mean_us: delay.mean,
            deviation_us: delay.deviation,
        }
    });
    LatencyCell {
        source,
        policy,
        load_tasks,
        samples: samples.len(),
        mean_us: delay.mean,
        deviation_us: delay.deviation,
        p50_us: quantile(&delays_us, 0.5),
        p99_us: quantile(&delays_us, 0.99),
        max_us: quantile(&delays_us, 1.0),
        by_limit: by_limit.collect(),
        delays_us,
    }
}

/// One picture of each kind for each load, as in the paper.
fn draw(out: &Path, cells: &[LatencyCell]) -> anyhow::Result<()> {
    for (computing, writing) in LOADS {
        let load = computing + writing;
        let of_load = || cells.iter().filter(move |cell| cell.load_tasks == load);
        let deadlines = || of_load().filter(|cell| cell.source.starts_with("deadline"));
        let title = |what: &str| format!("{what}, {load} load tasks");
        let limits = || Axis::logarithmic("deadline (ms)", 0.4..120.0);
        let us = |what: &str| Axis::logarithmic(what, 1.0..100_000.0);
        Figure {
            title: title("Fig. 3: mean latency of a deadline's notification"),
            x: limits(),
            y: us("mean latency (us)"),
            lines: by_limit(deadlines(), |limit| limit.mean_us),
            names: Corner::UpperLeft,
        }
        .draw(out, &format!("notification-latency-fig3-load{load}"))?;
        Figure {
            title: title("Fig. 4: its standard deviation"),
            x: limits(),
            y: us("standard deviation (us)"),
            lines: by_limit(deadlines(), |limit| limit.deviation_us.max(1.0)),
            names: Corner::UpperLeft,
        }
        .draw(out, &format!("notification-latency-fig4-load{load}"))?;
        for (figure, constraint) in [("5", "deadline"), ("6", "execution")] {
            let kind = of_load().filter(|cell| cell.source.starts_with(constraint));
            Figure {
                title: title(&format!("Fig. {figure}: latency, {constraint} constraints")),
                x: us("latency (us)"),
                y: Axis::linear("share of the notifications", 0.0..1.0),
                lines: kind
                    .map(|cell| Line::new(&name(cell), Look::Steps, distribution(&cell.delays_us)))
                    .collect(),
                names: Corner::LowerRight,
            }
            .draw(out, &format!("notification-latency-fig{figure}-load{load}"))?;
        }
    }
    Ok(())
}

fn by_limit<'a>(
    cells: impl Iterator<Item = &'a LatencyCell>,
    of: impl Fn(&OfLimit) -> f64,
) -> Vec<Line> {
    let points = |cell: &LatencyCell| {
        cell.by_limit
            .iter()
            .map(|limit| (limit.limit_ms, of(limit)))
            .collect()
    };
    cells
        .map(|cell| Line::new(&name(cell), Look::Marked, points(cell)))
        .collect()
}

fn name(cell: &LatencyCell) -> String {
    let source = cell
        .source
        .rsplit_once(", ")
        .map_or("", |(_, source)| source);
    format!("{} {source}", cell.policy).trim_end().to_owned()
}

/// Without load, and beside the most.
fn table(cells: &[LatencyCell]) -> Table {
    let shown = |cell: &&LatencyCell| [0, 10].contains(&cell.load_tasks);
    Table::of(cells.iter().filter(shown), |cell| {
        let us = |figure: f64| format!("{figure:.1} us");
        [
            ("constraint", cell.source.to_owned()),
            ("load", cell.load_tasks.to_string()),
            ("policy", cell.policy.to_owned()),
            ("samples", cell.samples.to_string()),
            ("mean", us(cell.mean_us)),
            ("deviation", us(cell.deviation_us)),
            ("p50", us(cell.p50_us)),
            ("p99", us(cell.p99_us)),
            ("max", us(cell.max_us)),
        ]
    })
}
