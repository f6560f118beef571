//! `onbeat-lab sim --from`: the threads of recordings under other policies and on other machines,
//! in one table.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::ValueEnum;
use onbeat_model::Quantiles;
use onbeat_model::{Reservation, Span};
use onbeat_sim::comparison::{
    self, BudgetRules, ComparedMachine, ComparedPolicy, ComparedThread, Threads,
};
use onbeat_sim::policy::linux::Class;
use onbeat_sim::scenario::figures::{GroupFigures, ScenarioFigures};
use onbeat_sim::scenario::{LoopSettings, Power, Scenario, ScenarioRun};
use rayon::prelude::*;
use serde::Serialize;

use crate::cli::{ComparisonOptions, SimArgs};
use crate::progress::ProgressLine;
use crate::sim::{percent, simulate};
use onbeat_command::output::warn;
use onbeat_command::table::TextTable;
use onbeat_top::Align;

/// One line of `sim --from --json`; `docs/formats.md` describes it.
#[derive(Serialize)]
struct CompareLine {
    policy: String,
    cpus: Option<usize>,
    speed: f64,
    hogs: usize,
    duration_ns: Span,
    busy: Option<f64>,
    energy: Option<f64>,
    changes: Option<u64>,
    threads: Vec<ThreadLine>,
}

#[derive(Serialize)]
struct ThreadLine {
    tid: u32,
    comm: String,
    period_ns: Option<Span>,
    jobs: u64,
    missed: Option<u64>,
    response_time: Option<Quantiles>,
    executed_ns: Span,
    utilisation: f64,
    exhaustions: u64,
    reservation: Option<Reservation>,
    refused: bool,
}

struct CompareRun {
    policy: ComparedPolicy,
    machine: ComparedMachine,
    scenario: Scenario,
    asked: Vec<Option<Reservation>>,
}

pub(super) fn run(args: &SimArgs) -> anyhow::Result<ExitCode> {
    let options = &args.comparison;
    let threads = read(options)?;
    let planned = plan(&threads, options)?;
    if planned.len() > 1 && (args.jobs.is_some() || args.timeline.is_some()) {
        anyhow::bail!(
            "--jobs and --timeline take one run, not {}: give one --policy, --cpus and --speed",
            planned.len()
        );
    }
    let progress = ProgressLine::new(threads.duration * planned.len() as u64, args.quiet);
    let results = planned
        .par_iter()
        .map(|planned| simulate(&ScenarioRun::new(&planned.scenario), args, &progress))
        .collect::<anyhow::Result<Vec<ScenarioFigures>>>();
    progress.end();
    let lines: Vec<CompareLine> = std::iter::once(recorded(&threads))
        .chain(
            planned
                .iter()
                .zip(&results?)
                .map(|(planned, figures)| simulated(&threads, planned, figures)),
        )
        .collect();
    let mut output = BufWriter::new(io::stdout().lock());
    if args.json {
        for line in &lines {
            writeln!(output, "{}", serde_json::to_string(line)?)?;
        }
    } else {
        write!(output, "{}", table(&lines))?;
        output.flush()?;
        tell_the_rest(&threads, &lines);
    }
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn read(options: &ComparisonOptions) -> anyhow::Result<Threads> {
    let mut all: Option<Threads> = None;
    for file in &options.from {
        let threads = Threads::read(file)?;
        warn(file, &threads.warnings);
        all = Some(match all {
            Some(others) => others.beside(threads),
            None => threads,
        });
    }
    Ok(all.unwrap_or_default())
}

fn plan(threads: &Threads, options: &ComparisonOptions) -> anyhow::Result<Vec<CompareRun>> {
    let policies = if options.policies.is_empty() {
        ComparedPolicy::value_variants()
    } else {
        &options.policies
    };
    let own_cpus = || {
        let here = || std::thread::available_parallelism().map_or(1, usize::from);
        vec![threads.cpus.unwrap_or_else(here)]
    };
    let cpus = if options.cpus.is_empty() {
        own_cpus()
    } else {
        options.cpus.iter().map(|&cpus| usize::from(cpus)).collect()
    };
    let config = options.config.read()?;
    let estimation = config.estimation(false);
    let rules = BudgetRules {
        may_miss: options.misses.as_cpus(),
        rho: config.rho.as_cpus(),
        overrun: options.overrun,
        onbeat: LoopSettings {
            predictor: estimation.predictor,
            parameters: estimation.parameters,
            sets_speed: false,
            is_hard: false,
        },
    };
    let mut planned = Vec::new();
    for &cpus in &cpus {
        for speed in &options.speeds {
            for &policy in policies {
                if !policy.suits(speed.as_cpus()) {
                    anyhow::ensure!(
                        options.policies.is_empty(),
                        "--policy {} is for the speed that was recorded: leave out --speed",
                        name(policy)
                    );
                    continue;
                }
                let machine = ComparedMachine {
                    cpus,
                    speed: speed.as_cpus(),
                    hogs: usize::from(options.hogs),
                    power: Power {
                        fixed: options.fixed_power,
                        idle: options.idle_power,
                        ..Power::default()
                    },
                };
                planned.push(CompareRun {
                    policy,
                    machine,
                    scenario: comparison::scenario(threads, policy, &machine, &rules),
                    asked: comparison::reservations(threads, policy, machine.speed, &rules),
                });
            }
        }
    }
    Ok(planned)
}

fn thread_line(thread: &ComparedThread, duration: Span, executed: Span) -> ThreadLine {
    ThreadLine {
        tid: thread.task.id.tid,
        comm: thread.task.comm.to_text(),
        period_ns: thread.rhythm.map(|rhythm| rhythm.period),
        jobs: thread.jobs.len() as u64,
        missed: None,
        response_time: None,
        executed_ns: executed,
        utilisation: executed.ratio(duration),
        exhaustions: 0,
        reservation: None,
        refused: false,
    }
}

/// How the threads fared when they were recorded.
fn recorded(threads: &Threads) -> CompareLine {
    let line = |thread: &ComparedThread| ThreadLine {
        missed: thread.rhythm.map(|_| thread.seen.missed),
        response_time: thread.seen.response_time,
        ..thread_line(thread, threads.duration, thread.seen.executed)
    };
    CompareLine {
        policy: "recorded".to_owned(),
        cpus: threads.cpus,
        speed: 1.0,
        hogs: 0,
        duration_ns: threads.duration,
        busy: None,
        energy: None,
        changes: None,
        threads: threads.list.iter().map(line).collect(),
    }
}

fn simulated(threads: &Threads, planned: &CompareRun, figures: &ScenarioFigures) -> CompareLine {
    let groups = figures.tasks.iter().zip(&planned.scenario.groups);
    let each = threads.list.iter().zip(groups).zip(&planned.asked);
    let line = |thread: &ComparedThread,
                group: &GroupFigures,
                class: Class,
                asked: Option<Reservation>| {
        let reservation = match class {
            Class::Deadline(deadline) => Some(deadline.reservation),
            _ => None,
        };
        ThreadLine {
            jobs: group.jobs,
            missed: thread.rhythm.map(|_| group.missed),
            response_time: group.response_time,
            exhaustions: group.exhaustions,
            reservation: reservation.or(asked),
            refused: planned.policy.reserves() && thread.rhythm.is_some() && reservation.is_none(),
            ..thread_line(thread, figures.duration_ns, group.executed_ns)
        }
    };
    let cpus = planned.machine.cpus;
    let busy: f64 = figures.cpus.iter().map(|cpu| cpu.busy).sum();
    CompareLine {
        policy: name(planned.policy),
        cpus: Some(cpus),
        speed: planned.machine.speed,
        hogs: planned.machine.hogs,
        duration_ns: figures.duration_ns,
        busy: Some(busy / cpus as f64),
        energy: Some(figures.energy),
        changes: figures.changes,
        threads: each
            .map(|((thread, (group, of)), asked)| line(thread, group, of.class, *asked))
            .collect(),
    }
}

fn name(policy: ComparedPolicy) -> String {
    let value = policy.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

fn table(lines: &[CompareLine]) -> TextTable {
    let mut table = TextTable::new(&[
        ("policy", Align::Left),
        ("CPUs", Align::Right),
        ("speed", Align::Right),
        ("thread", Align::Right),
        ("name", Align::Left),
        ("period", Align::Right),
        ("jobs", Align::Right),
        ("missed", Align::Right),
        ("p50", Align::Right),
        ("p95", Align::Right),
        ("p99", Align::Right),
        ("CPU", Align::Right),
        ("energy", Align::Right),
    ]);
    let none = || "-".to_owned();
    for line in lines {
        let machine = [
            line.policy.clone(),
            line.cpus.map_or_else(none, |cpus| cpus.to_string()),
            format!("{:.0}%", line.speed * 100.0),
        ];
        for thread in &line.threads {
            let time = |of: fn(&Quantiles) -> Span| {
                let times = thread.response_time.as_ref();
                times.map_or_else(none, |times| of(times).to_string())
            };
            let refused = if thread.refused { "!" } else { "" };
            table.row(
                machine.clone().into_iter().chain([
                    thread.tid.to_string(),
                    format!("{}{refused}", thread.comm),
                    thread
                        .period_ns
                        .map_or_else(none, |period| period.to_string()),
                    thread.jobs.to_string(),
                    share(thread.missed, thread.jobs),
                    time(|times| times.p50_ns),
                    time(|times| times.p95_ns),
                    time(|times| times.p99_ns),
                    percent(thread.utilisation),
                ]),
            );
        }
        let Some((busy, energy)) = line.busy.zip(line.energy) else {
            continue;
        };
        let periodic = || line.threads.iter().filter(|thread| thread.missed.is_some());
        let jobs = periodic().map(|thread| thread.jobs).sum();
        let missed = periodic().filter_map(|thread| thread.missed).sum();
        table.row(machine.into_iter().chain([
            String::new(),
            "(all)".to_owned(),
            String::new(),
            u64::to_string(&jobs),
            share(Some(missed), jobs),
            String::new(),
            String::new(),
            String::new(),
            percent(busy),
            Span::from_secs_f64(energy).to_string(),
        ]));
    }
    table
}

fn share(missed: Option<u64>, jobs: u64) -> String {
    match missed {
        Some(missed) if jobs > 0 => percent(missed as f64 / jobs as f64),
        _ => "-".to_owned(),
    }
}

/// The remarks below the table: what its marks mean, and where the recording itself misleads.
fn tell_the_rest(threads: &Threads, lines: &[CompareLine]) {
    eprintln!(
        "energy: time of one CPU at the full power of the recorded machine; CPU of (all): how busy the CPUs were"
    );
    if lines
        .iter()
        .flat_map(|line| &line.threads)
        .any(|thread| thread.refused)
    {
        eprintln!(
            "!: its reservation needs more than is free, so the kernel would refuse it; it runs as any other thread here"
        );
    }
    let late = threads
        .list
        .iter()
        .filter(|thread| thread.seen.missed * 20 > thread.jobs.len() as u64);
    for thread in late {
        eprintln!(
            "onbeat-lab: {} ({}) was late itself in {} of {} jobs when it was recorded, and may have left out others: \
             record it on a machine with time to spare",
            thread.task.id.tid,
            thread.task.comm,
            thread.seen.missed,
            thread.jobs.len()
        );
    }
}
