//! An hour of programs that come and go under load: does the service leak memory or files, and does
//! a reservation get lost?
//!
//! Every second it is looked whether the service and the kernel agree on who holds a reservation.
//! One that only one of them has, two looks in a row, is lost; unless its thread has stopped
//! working: rt-app's threads make themselves ordinary when their work is over, and may then take
//! seconds to write what they have measured.

mod judged;
pub(crate) mod service;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use onbeat_act::attributes::{Attributes, Policy};
use serde::Serialize;
use serde_json::json;

use crate::machine::{Hogs, Machine, Program, find_program, status};
use crate::results::{Ran, Table, quantile};
use crate::rt_app::{Calibration, RtApp, RtAppTask};
use service::{Bus, Taken};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For how long programs come and go
    #[arg(long, value_name = "N", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: u64,
    /// CPU hogs beside them; twice as many as CPUs if left out
    #[arg(long, value_name = "N")]
    hogs: Option<usize>,
}

const PROGRAMS: usize = 6;
/// The first program lives for this time, each next one a second longer, up to four times that;
/// then from the beginning.
const SHORTEST_LIFE: Duration = Duration::from_secs(5);
const LIVES: u64 = 16;
const EVERY: Duration = Duration::from_secs(1);
/// Until then everything that is kept from then on is there.
const WARM: Duration = Duration::from_secs(30);
/// A thread that blocks this many times between two looks is at work; one of a program has a job 25
/// times a second or more.
const AT_WORK: u64 = 10;
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the service is started, for the time that takes.
const STARTS: usize = 10;

#[derive(Debug, Serialize)]
struct Figures {
    minutes: u64,
    hogs: usize,
    start_up_ms: Vec<f64>,
    programs: usize,
    threads: usize,
    threads_reserved: usize,
    looks: usize,
    lost: usize,
    /// The entries of the BPF maps before the first program: the programs that the rules name.
    entries_before: usize,
    warm: Taken,
    end: Taken,
    memory_kb: Vec<u64>,
    tracked_at_end: f64,
    reserved_at_end: f64,
    own_cpu: f64,
    jobs: f64,
    missed: f64,
    events_lost: f64,
}

struct Visitor {
    program: Program,
    _files: RtApp,
    until: Instant,
}

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    machine.need_root()?;
    let facts = machine.facts();
    let program = which("rt-app")?;
    let calibration = Calibration::measure(machine)?;
    let bus = Bus::start(machine, &program)?;
    let mut start_up_ms = Vec::new();
    for _ in 0..STARTS {
        let service = bus.service(machine)?;
        start_up_ms.push(service.started_in.as_secs_f64() * 1e3);
    }
    let hogs = args.hogs.unwrap_or(2 * Machine::cpus());
    let figures = soak(machine, &bus, calibration, (args.minutes, hogs))?;
    let figures = Figures {
        start_up_ms,
        ..figures
    };
    let wanted = "no leak, no reservation lost; start-up to serving below 200 ms";
    machine.publish(
        &Ran::Live(facts),
        "soak",
        &table(&figures),
        &figures,
        json!({ "wanted": wanted }),
    )?;
    let shortcomings = judged::shortcomings(&figures);
    anyhow::ensure!(shortcomings.is_empty(), "{}", shortcomings.join("; "));
    Ok(())
}

fn soak(
    machine: &Machine,
    bus: &Bus,
    calibration: Calibration,
    (minutes, hogs): (u64, usize),
) -> anyhow::Result<Figures> {
    let service = bus.service(machine)?;
    let entries_before = service.taken()?.map_entries;
    let _hogs = Hogs::start(machine, hogs)?;
    let (begin, cpu) = (Instant::now(), service.metric("process_cpu_seconds_total")?);
    let end = begin + Duration::from_secs(60 * minutes);
    let mut visitors: Vec<Visitor> = Vec::new();
    let (mut programs, mut looks, mut lost) = (0, 0, 0);
    let (mut seen, mut reserved) = (BTreeSet::<u32>::new(), BTreeSet::<u32>::new());
    let mut differ = BTreeMap::<u32, u64>::new();
    let (mut warm, mut memory_kb) = (None, Vec::new());
    while Instant::now() < end {
        visitors.retain_mut(|visitor| {
            visitor.program.ended().is_none() && Instant::now() < visitor.until
        });
        while visitors.len() < PROGRAMS {
            visitors.push(visit(machine, calibration, programs)?);
            programs += 1;
        }
        machine.wait(EVERY)?;
        let held = service.reserved()?;
        let policies = policies(&visitors);
        let in_kernel = |tid: &u32| policies.get(tid) == Some(&true);
        let mut now = BTreeMap::new();
        for tid in policies.keys() {
            // A thread that has ended meanwhile is no difference.
            let Some(blocked) = blocked(*tid).filter(|_| in_kernel(tid) != held.contains(tid))
            else {
                continue;
            };
            match differ.get(tid) {
                Some(before) if in_kernel(tid) || blocked.saturating_sub(*before) >= AT_WORK => {
                    let who = if in_kernel(tid) { "kernel" } else { "service" };
                    eprintln!("thread {tid}: only the {who} has its reservation");
                    lost += 1;
                }
                _ => {
                    now.insert(*tid, blocked);
                }
            }
        }
        differ = now;
        reserved.extend(policies.keys().filter(|tid| in_kernel(tid)).copied());
        seen.extend(policies.keys().copied());
        looks += 1;
        if warm.is_none() && begin.elapsed() >= WARM {
            warm = Some(service.taken()?);
        }
        if memory_kb.len() as u64 * 60 <= begin.elapsed().as_secs() {
            memory_kb.push(service.taken()?.memory_kb);
        }
    }
    let own_cpu = service.metric("process_cpu_seconds_total")? - cpu;
    let own_cpu = own_cpu / begin.elapsed().as_secs_f64();
    visitors.clear();
    let nobody = || {
        service
            .metric("onbeat_threads_tracked")
            .is_ok_and(|count| count == 0.0)
            && service
                .taken()
                .is_ok_and(|taken| taken.map_entries <= entries_before)
    };
    machine.wait_for(PATIENCE, nobody)?;
    let end = service.taken()?;
    Ok(Figures {
        minutes,
        hogs,
        start_up_ms: Vec::new(),
        programs,
        threads: seen.len(),
        threads_reserved: reserved.len(),
        looks,
        lost,
        entries_before,
        warm: warm.unwrap_or(end),
        end,
        memory_kb,
        tracked_at_end: service.metric("onbeat_threads_tracked")?,
        reserved_at_end: service.metric("onbeat_threads_reserved")?,
        own_cpu,
        jobs: service.metric("onbeat_jobs_total")?,
        missed: service.metric("onbeat_missed_deadlines_total")?,
        events_lost: service.metric("onbeat_events_lost_total")?,
    })
}

fn visit(machine: &Machine, calibration: Calibration, number: usize) -> anyhow::Result<Visitor> {
    let task = |name, period_us, run_us| RtAppTask {
        name,
        period_us,
        run_us,
        reserved_us: None,
    };
    let tasks = [task("film", 40_000, 1500), task("sound", 20_000, 400)];
    // Some end by themselves, some are told to.
    let life = SHORTEST_LIFE + Duration::from_secs(number as u64 % LIVES);
    let own = if number.is_multiple_of(2) {
        life
    } else {
        2 * life
    };
    let files = RtApp::new(&tasks, calibration, own)?;
    let mut command = Command::new("rt-app");
    command.arg(files.configuration()).stdout(Stdio::null());
    Ok(Visitor {
        program: Program::start(command, &machine.file("rt-app.stderr"))?,
        _files: files,
        until: Instant::now() + life,
    })
}

fn policies(visitors: &[Visitor]) -> BTreeMap<u32, bool> {
    let threads = visitors.iter().flat_map(|visitor| {
        let folder = fs::read_dir(format!("/proc/{}/task", visitor.program.pid()));
        folder.into_iter().flatten()
    });
    let tids = threads.filter_map(|entry| {
        let entry = entry.ok()?;
        let comm = fs::read_to_string(entry.path().join("comm")).ok()?;
        let periodic = comm.starts_with("film") || comm.starts_with("sound");
        entry
            .file_name()
            .to_str()?
            .parse()
            .ok()
            .filter(|_| periodic)
    });
    tids.filter_map(|tid: u32| {
        let attributes = Attributes::get(tid).ok()?;
        Some((tid, matches!(attributes.policy, Policy::Deadline(_))))
    })
    .collect()
}

fn blocked(tid: u32) -> Option<u64> {
    status(tid, "voluntary_ctxt_switches")
}

pub(crate) fn which(name: &str) -> anyhow::Result<String> {
    let found = find_program(name)
        .with_context(|| format!("no {name}: scripts/setup.sh experiments installs it"))?;
    Ok(fs::canonicalize(found)?.to_string_lossy().into_owned())
}

fn table(figures: &Figures) -> Table {
    let mib = |kb: u64| format!("{:.1} MiB", kb as f64 / 1024.0);
    let Figures { warm, end, .. } = figures;
    let start_up = |p| quantile(&figures.start_up_ms, p);
    let missed = 100.0 * figures.missed / figures.jobs.max(1.0);
    let memory = format!("{}, {}", mib(warm.memory_kb), mib(end.memory_kb));
    let got = format!("{} of {}", figures.threads_reserved, figures.threads);
    let entries = [figures.entries_before, warm.map_entries, end.map_entries];
    let entries = entries.map(|count| count.to_string()).join(", ");
    let rows = [
        (
            "start-up to serving, median",
            format!("{:.0} ms", start_up(0.5)),
        ),
        ("longest", format!("{:.0} ms", start_up(1.0))),
        (
            "minutes, hogs",
            format!("{}, {}", figures.minutes, figures.hogs),
        ),
        ("programs", figures.programs.to_string()),
        ("their threads that got a reservation", got),
        ("looks", figures.looks.to_string()),
        ("reservations lost", figures.lost.to_string()),
        (
            "threads tracked at the end",
            figures.tracked_at_end.to_string(),
        ),
        (
            "reservations held at the end",
            figures.reserved_at_end.to_string(),
        ),
        ("memory when warm, at the end", memory),
        (
            "open files when warm, at the end",
            format!("{}, {}", warm.files, end.files),
        ),
        (
            "own threads when warm, at the end",
            format!("{}, {}", warm.threads, end.threads),
        ),
        ("entries of BPF maps before, when warm, at the end", entries),
        (
            "own CPU time",
            format!("{:.2}% of a CPU", 100.0 * figures.own_cpu),
        ),
        ("jobs, missed", format!("{}, {missed:.2}%", figures.jobs)),
        ("events lost", figures.events_lost.to_string()),
    ];
    Table::of(rows, |(what, figure)| {
        [("what", what.to_owned()), ("figure", figure)]
    })
}
