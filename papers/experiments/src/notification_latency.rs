//! How late libonbeat notifies a violation: section 7 of the timing exceptions' paper, Fig. 3 to 6.
//!
//! The samples are taken by `libonbeat/bench/samples.c`, in the Linux and in the portable form.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::log::numbers;
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

struct LatencyCell {
    source: &'static str,
    policy: &'static str,
    load_tasks: usize,
    /// Limit and delay of each notification, in ns.
    samples: Vec<[f64; 2]>,
}

impl LatencyCell {
    fn delays_us(&self) -> Vec<f64> {
        self.samples.iter().map(|[_, delay]| delay / 1e3).collect()
    }

    /// The delays of each limit, which is in ms.
    fn by_limit(&self) -> impl Iterator<Item = (f64, Spread)> {
        let mut limits: Vec<f64> = self.samples.iter().map(|[limit, _]| *limit).collect();
        limits.sort_by(f64::total_cmp);
        limits.dedup();
        limits.into_iter().map(|limit| {
            let of_it = self.samples.iter().filter(|sample| sample[0] == limit);
            let delays_us: Vec<f64> = of_it.map(|[_, delay]| delay / 1e3).collect();
            (limit / 1e6, Spread::of_all(&delays_us))
        })
    }
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
                cells.push(LatencyCell {
                    source,
                    policy,
                    load_tasks: load.0 + load.1,
                    samples: sample(machine, command)?,
                });
            }
        }
    }
    draw(machine.out(), &cells)?;
    machine.publish(&Ran::live(machine), NAME, &table(&cells));
    Ok(())
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

fn sample(machine: &Machine, mut command: Command) -> anyhow::Result<Vec<[f64; 2]>> {
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
    numbers(&samples)
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
            lines: by_limit(deadlines(), |delay| delay.mean),
            names: Corner::UpperLeft,
        }
        .draw(out, &format!("notification-latency-fig3-load{load}"))?;
        Figure {
            title: title("Fig. 4: its standard deviation"),
            x: limits(),
            y: us("standard deviation (us)"),
            lines: by_limit(deadlines(), |delay| delay.deviation.max(1.0)),
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
                    .map(|cell| {
                        Line::new(&name(cell), Look::Steps, distribution(&cell.delays_us()))
                    })
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
    of: impl Fn(Spread) -> f64,
) -> Vec<Line> {
    let line = |cell: &LatencyCell| {
        let points = cell
            .by_limit()
            .map(|(limit_ms, delay)| (limit_ms, of(delay)));
        Line::new(&name(cell), Look::Marked, points.collect())
    };
    cells.map(line).collect()
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
        let delays_us = cell.delays_us();
        let Spread { mean, deviation } = Spread::of_all(&delays_us);
        [
            ("constraint", cell.source.to_owned()),
            ("load", cell.load_tasks.to_string()),
            ("policy", cell.policy.to_owned()),
            ("samples", delays_us.len().to_string()),
            ("mean", us(mean)),
            ("deviation", us(deviation)),
            ("p50", us(quantile(&delays_us, 0.5))),
            ("p99", us(quantile(&delays_us, 0.99))),
            ("max", us(quantile(&delays_us, 1.0))),
        ]
    })
}
