//! onbeat's own CPU time and memory while it tracks many periodic threads: at most 2% of a CPU for
//! 200, and for 1,000 at 50 Hz 5% and 40 MB.
//!
//! Counted from outside, by the kernel: over the whole of onbeat's process, and beside it what its
//! BPF programs take. They run at every switch and wakeup of the machine, in the time of the thread
//! that switches or wakes.

pub(crate) mod beats;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

use crate::machine::{Machine, Onbeat, Program, ThreadFigures, cpu_ns};
use crate::results::{Ran, Table, percent};

const NAME: &str = "tracking-cost";
/// For how long onbeat is watched.
const SECONDS: u64 = 10;
/// How many threads, and their periods in us, a quarter of them with each.
const CROWDS: [(u32, [u64; 4]); 5] = [
    (12, [20_000; 4]),
    (200, [20_000, 33_333, 40_000, 100_000]),
    (600, [20_000; 4]),
    (1000, [40_000; 4]),
    (1000, [20_000; 4]),
];
/// The execution time of each job.
const RUN_US: u64 = 5;

/// The time onbeat gets to find the periods: that costs more, and happens once.
const SETTLE: Duration = Duration::from_secs(5);

#[derive(Debug, Serialize)]
struct Figures {
    threads: u32,
    jobs_per_s: f64,
    with_a_reservation: usize,
    /// The report's, from the moment on at which each was found to have a period.
    with_a_period: usize,
    jobs: u64,
    missed: u64,
    ran_out: u64,
    changes: u64,
    own_cpu_settling: f64,
    own_cpu: f64,
    bpf_cpu: f64,
    bpf_ns_per_run: f64,
    memory_mib: f64,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    machine.need_root()?;
    let _statistics = BpfStatistics::on()?;
    let figures = CROWDS.map(|(threads, periods_us)| track(machine, threads, periods_us));
    let figures = figures.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    machine.publish(&Ran::live(machine), NAME, &table(&figures), &figures)
}

fn track(machine: &Machine, threads: u32, periods_us: [u64; 4]) -> anyhow::Result<Figures> {
    let time = SETTLE + Duration::from_secs(SECONDS);
    println!("tracking {threads} threads for {} s ...", time.as_secs());
    let onbeat = Onbeat::new(machine, NAME)?;
    let command = beating(onbeat.run(["--children"], "sh"), threads, periods_us)?;
    let mut program = Program::start(command, &machine.file("tracking-cost.stderr"))?;
    let pid = program.pid();
    let begin = own_cpu(pid)?;
    let settling = cpu_over(machine, pid, SETTLE)?;
    let (bpf, from) = (Bpf::of(pid)?, Instant::now());
    let own_cpu = cpu_over(machine, pid, Duration::from_secs(SECONDS))?;
    let (bpf, over) = (Bpf::of(pid)?.since(&bpf), from.elapsed());
    let memory_mib = memory_mib(pid)?;
    program.end();
    let told = onbeat.threads()?;
    let sum = |of: fn(&ThreadFigures) -> u64| told.iter().map(of).sum();
    let reserved = told.iter().filter(|t| t.reserved_after_ns.is_some());
    let jobs_per_s = periods_us.map(|us| f64::from(threads / 4) * 1e6 / us as f64);
    Ok(Figures {
        threads,
        jobs_per_s: jobs_per_s.iter().sum(),
        with_a_reservation: reserved.count(),
        with_a_period: told.len(),
        jobs: sum(|thread| thread.jobs),
        missed: sum(|thread| thread.missed),
        ran_out: sum(|thread| thread.exhaustions.unwrap_or_default()),
        changes: sum(|thread| thread.changes),
        own_cpu_settling: settling + begin.as_secs_f64() / SETTLE.as_secs_f64(),
        own_cpu,
        bpf_cpu: bpf.ns as f64 / over.as_nanos() as f64,
        bpf_ns_per_run: bpf.ns as f64 / bpf.runs.max(1) as f64,
        memory_mib,
    })
}

/// `shell` is to run four programs that do nothing but what is measured, side by side.
fn beating(mut shell: Command, threads: u32, periods_us: [u64; 4]) -> anyhow::Result<Command> {
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let script = format!(
        r#"for period; do "$0" beats --threads {} --run {RUN_US} --seconds {} --period "$period" & done; wait"#,
        threads / 4,
        SETTLE.as_secs() + SECONDS + 5
    );
    shell.args(["-c", &script]).arg(own);
    shell.args(periods_us.map(|us| us.to_string()));
    shell.stdout(Stdio::null());
    Ok(shell)
}

/// The kernel counts what BPF programs take, as long as this lives.
struct BpfStatistics {
    before: String,
}

impl BpfStatistics {
    const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

    fn on() -> anyhow::Result<Self> {
        let told = || format!("cannot switch on {}", Self::SWITCH);
        let before = fs::read_to_string(Self::SWITCH).with_context(told)?;
        fs::write(Self::SWITCH, "1").with_context(told)?;
        Ok(Self { before })
    }
}

impl Drop for BpfStatistics {
    fn drop(&mut self) {
        // It could be switched on: nothing is in the way of this, either.
        let _ = fs::write(Self::SWITCH, self.before.trim());
    }
}

/// The time of the BPF programs of a process since they were loaded.
#[derive(Default)]
struct Bpf {
    ns: u64,
    runs: u64,
}

impl Bpf {
    fn of(pid: u32) -> anyhow::Result<Self> {
        let folder = format!("/proc/{pid}/fdinfo");
        let files = fs::read_dir(Path::new(&folder))
            .context("onbeat ended early: its messages are in tracking-cost.stderr")?;
        let mut all = Self::default();
        for text in files.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok()) {
            let field = |name: &str| {
                let value = text.lines().find_map(|line| line.strip_prefix(name))?;
                value.trim().parse::<u64>().ok()
            };
            // A link names its program, but counts nothing.
            all.ns += field("run_time_ns:").unwrap_or(0);
            all.runs += field("run_cnt:").unwrap_or(0);
        }
        Ok(all)
    }

    const fn since(&self, earlier: &Self) -> Self {
        Self {
            ns: self.ns.saturating_sub(earlier.ns),
            runs: self.runs.saturating_sub(earlier.runs),
        }
    }
}

fn cpu_over(machine: &Machine, pid: u32, time: Duration) -> anyhow::Result<f64> {
    let (from, before) = (Instant::now(), own_cpu(pid)?);
    machine.wait(time)?;
    let after = own_cpu(pid)?;
    Ok((after - before).as_secs_f64() / from.elapsed().as_secs_f64())
}

fn own_cpu(pid: u32) -> anyhow::Result<Duration> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .context("onbeat ended early: its messages are in tracking-cost.stderr")?;
    let ns = threads
        .filter_map(|entry| cpu_ns(&entry.ok()?.path()))
        .sum();
    Ok(Duration::from_nanos(ns))
}

fn memory_mib(pid: u32) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = most.and_then(|most| most.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kilobytes.context("onbeat ended early: its messages are in tracking-cost.stderr")? / 1024.0)
}

fn table(all: &[Figures]) -> Table {
    Table::of(all, |figures| {
        let late = figures.missed as f64 / figures.jobs.max(1) as f64;
        [
            ("threads", figures.threads.to_string()),
            ("jobs per s", format!("{:.0}", figures.jobs_per_s)),
            ("with a period", figures.with_a_period.to_string()),
            ("with a reservation", figures.with_a_reservation.to_string()),
            ("jobs late", percent(late, 2)),
            ("budgets that ran out", figures.ran_out.to_string()),
            ("changes", figures.changes.to_string()),
            ("own CPU, first 5 s", percent(figures.own_cpu_settling, 2)),
            ("own CPU after", percent(figures.own_cpu, 2)),
            ("BPF programs", percent(figures.bpf_cpu, 2)),
            (
                "of which each run",
                format!("{:.0} ns", figures.bpf_ns_per_run),
            ),
            ("memory, at most", format!("{:.1} MiB", figures.memory_mib)),
        ]
    })
}
