//! onbeat's own CPU time and memory while it tracks many periodic threads: at most 2% of a CPU for
//! 200, and for 1,000 at 50 Hz 5% and 40 MB.
//!
//! Counted from outside, by the kernel: over the whole of onbeat's process, and beside it what its
//! BPF programs take. They run at every switch and wakeup of the machine, in the time of the thread
//! that switches or wakes.

pub(crate) mod beats;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::machine::{Machine, Onbeat, Program, ThreadFigures, cpu_ns};
use crate::results::{Ran, Table, percent};

const NAME: &str = "tracking-cost";
const ENDED_EARLY: &str = "onbeat ended early: its messages are in tracking-cost.stderr";
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

/// A row of the table.
type Cells = [(&'static str, String); 12];

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    machine.need_root()?;
    let _statistics = BpfStatistics::on()?;
    let rows = CROWDS.map(|(threads, periods_us)| track(machine, threads, periods_us));
    let rows = rows.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    machine.publish(&Ran::live(machine), NAME, &Table::of(rows, |cells| cells));
    Ok(())
}

fn track(machine: &Machine, threads: u32, periods_us: [u64; 4]) -> anyhow::Result<Cells> {
    let time = SETTLE + Duration::from_secs(SECONDS);
    println!("tracking {threads} threads for {} s ...", time.as_secs());
    let onbeat = Onbeat::new(machine, NAME)?;
    let command = beating(onbeat.run(["--children"], "sh"), threads, periods_us)?;
    let mut program = Program::start(command, &machine.file("tracking-cost.stderr"))?;
    let pid = program.pid();
    let begin = own_cpu(pid)?;
    let settling = cpu_over(machine, pid, SETTLE)?;
    let ([ns, runs], from) = (bpf_of(pid)?, Instant::now());
    let own_cpu = cpu_over(machine, pid, Duration::from_secs(SECONDS))?;
    let ([ns_after, runs_after], over) = (bpf_of(pid)?, from.elapsed());
    let (ns, runs) = (ns_after.saturating_sub(ns), runs_after.saturating_sub(runs));
    let memory_mib = memory_mib(pid)?;
    program.end();
    let told = onbeat.threads()?;
    let sum = |of: fn(&ThreadFigures) -> u64| -> u64 { told.iter().map(of).sum() };
    let reserved = told.iter().filter(|t| t.reserved_after_ns.is_some());
    let jobs_per_s = periods_us.map(|us| f64::from(threads / 4) * 1e6 / us as f64);
    let jobs_per_s: f64 = jobs_per_s.iter().sum();
    // The report counts from the moment on at which each was found to have a period.
    let late = sum(|thread| thread.missed) as f64 / sum(|thread| thread.jobs).max(1) as f64;
    let ran_out = sum(|thread| thread.exhaustions.unwrap_or_default());
    let settling = settling + begin.as_secs_f64() / SETTLE.as_secs_f64();
    let bpf_cpu = ns as f64 / over.as_nanos() as f64;
    let each_run = ns as f64 / runs.max(1) as f64;
    Ok([
        ("threads", threads.to_string()),
        ("jobs per s", format!("{jobs_per_s:.0}")),
        ("with a period", told.len().to_string()),
        ("with a reservation", reserved.count().to_string()),
        ("jobs late", percent(late, 2)),
        ("budgets that ran out", ran_out.to_string()),
        ("changes", sum(|thread| thread.changes).to_string()),
        ("own CPU, first 5 s", percent(settling, 2)),
        ("own CPU after", percent(own_cpu, 2)),
        ("BPF programs", percent(bpf_cpu, 2)),
        ("of which each run", format!("{each_run:.0} ns")),
        ("memory, at most", format!("{memory_mib:.1} MiB")),
    ])
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

/// The time of the BPF programs of a process since they were loaded, in ns, and their runs.
fn bpf_of(pid: u32) -> anyhow::Result<[u64; 2]> {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).context(ENDED_EARLY)?;
    let mut all = [0; 2];
    for text in files.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok()) {
        // A link names its program, but counts nothing.
        for (sum, name) in all.iter_mut().zip(["run_time_ns:", "run_cnt:"]) {
            let value = text.lines().find_map(|line| line.strip_prefix(name));
            *sum += value
                .and_then(|value| value.trim().parse().ok())
                .unwrap_or(0);
        }
    }
    Ok(all)
}

fn cpu_over(machine: &Machine, pid: u32, time: Duration) -> anyhow::Result<f64> {
    let (from, before) = (Instant::now(), own_cpu(pid)?);
    machine.wait(time)?;
    let after = own_cpu(pid)?;
    Ok((after - before).as_secs_f64() / from.elapsed().as_secs_f64())
}

fn own_cpu(pid: u32) -> anyhow::Result<Duration> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).context(ENDED_EARLY)?;
    let ns = threads
        .filter_map(|entry| cpu_ns(&entry.ok()?.path()))
        .sum();
    Ok(Duration::from_nanos(ns))
}

fn memory_mib(pid: u32) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = most.and_then(|most| most.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kilobytes.context(ENDED_EARLY)? / 1024.0)
}
