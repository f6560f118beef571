//! The same programs on this machine, as `experiments/workloads/rates.c`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use onbeat_model::{Instant, Span};
use serde::Deserialize;

use super::following::{FollowTimes, Late};
use super::programs::{ProgramKind, ProgramRate};
use super::run::ProgramMethod;
use super::{Row, table};
use crate::machine::{Hogs, Machine, Onbeat, Program, compile};
use crate::results::Ran;

const NAME: &str = "rate-changes-live";
/// Under onbeat; one without.
const RUNS: u64 = 5;
/// When the first run's program changes its rate, and by how much later each further run's does.
const CHANGE_MS: u64 = 2000;
const LATER_MS: u64 = 53;
const SECONDS: u64 = 4;
const AFTER: Span = Span::from_secs(1);
/// On each CPU, as on the simulated machine.
const HOGS_PER_CPU: usize = 4;
/// Beyond the program's execution time, for a budget by hand.
const SPARE: f64 = 1.1;

/// A device cannot be had everywhere.
const KINDS: [ProgramKind; 3] = [
    ProgramKind::Film,
    ProgramKind::ControlLoop,
    ProgramKind::Game,
];

/// onbeat first: the others' jobs count for as long as its reservation took.
const METHODS: [ProgramMethod; 3] = [
    ProgramMethod::Onbeat,
    ProgramMethod::ByHand,
    ProgramMethod::Default,
];

/// The jobs of the program: the release of each, and whether it was in time.
type Judged = Vec<(Instant, bool)>;

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    machine.need_root()?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let program = compile("workloads/rates.c", [], folder.path())?;
    let _hogs = Hogs::start(machine, HOGS_PER_CPU * Machine::cpus())?;
    let mut rows = Vec::new();
    for kind in KINDS {
        println!("{}: {} runs of {SECONDS} s ...", kind.name(), RUNS + 2);
        let mut of_onbeat = None;
        for method in METHODS {
            let seeds = if method.is_onbeat() { RUNS } else { 1 };
            let done: Vec<_> = (1..=seeds)
                .map(|seed| run_one(machine, &program, kind, method, seed))
                .collect::<anyhow::Result<_>>()?;
            let late = |(following, changed, jobs): &(FollowTimes, Instant, Judged)| {
                let followed = following.reserved.or(of_onbeat).unwrap_or(Span::MAX);
                (*following, Late::around(jobs, *changed, followed, AFTER))
            };
            let outcomes: Vec<_> = done.iter().map(late).collect();
            if method.is_onbeat() {
                of_onbeat = median(done.iter().filter_map(|(following, ..)| following.reserved));
            }
            rows.push(Row::of(kind, method, &outcomes));
        }
    }
    let table = table(&rows, AFTER);
    machine.publish(&Ran::live(machine), NAME, &table, &rows)
}

fn median(times: impl Iterator<Item = Span>) -> Option<Span> {
    let mut times: Vec<Span> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

fn run_one(
    machine: &Machine,
    program: &Path,
    kind: ProgramKind,
    method: ProgramMethod,
    seed: u64,
) -> anyhow::Result<(FollowTimes, Instant, Judged)> {
    let run = format!("{NAME}.{kind:?}-{seed}");
    let onbeat = Onbeat::new(machine, &run)?;
    let mut command = match method {
        ProgramMethod::Default | ProgramMethod::ByHand => Command::new(program),
        ProgramMethod::Onbeat => onbeat.run([""; 0], program),
        ProgramMethod::OnbeatHard => onbeat.run(["--hard"], program),
    };
    let log = machine.file(&format!("{run}.{method:?}.jobs"));
    let rate = |rate: ProgramRate| {
        let us = |span: Span| span.as_ns() / 1000;
        let budget = match method {
            ProgramMethod::ByHand => format!(":{}", us(rate.mean.scale(SPARE))),
            _ => String::new(),
        };
        format!("{}:{}{budget}", us(rate.period), us(rate.mean))
    };
    command
        .arg(&log)
        .arg(if kind == ProgramKind::ControlLoop {
            "until"
        } else {
            "for"
        })
        .args([CHANGE_MS + LATER_MS * seed, SECONDS].map(|number| number.to_string()))
        .args(kind.rates().map(rate))
        .stdout(Stdio::null());
    // The log of an earlier run must not be taken for this one's; it may not exist.
    let _ = fs::remove_file(&log);
    let mut running = Program::start(command, &machine.file(&format!("{NAME}.stderr")))?;
    // A program that falls behind does each of its jobs all the same.
    let patience = Duration::from_secs(10 * SECONDS + 30);
    if !machine.wait_for(patience, || running.ended().is_some())? {
        bail!("rates did not end within {} s", patience.as_secs());
    }
    let text =
        fs::read_to_string(&log).with_context(|| format!("rates wrote no {}", log.display()))?;
    let new = kind.rates()[1].period;
    let (changed, jobs) = judged(&text, new).context("the log of rates is damaged")?;
    let mut following = FollowTimes::default();
    if method.is_onbeat() {
        let ends = jobs.last().map_or(changed, |&(at, _)| at);
        let decisions = fs::read_to_string(machine.file(&format!("{run}.log.jsonl")))?;
        for decision in decisions.lines() {
            let decision: LoggedDecision = serde_json::from_str(decision)?;
            let at = Instant::from_ns(decision.at_ns);
            let is_done = ["reserved", "changed", "released"].contains(&&*decision.what);
            if is_done && at >= changed && at < ends {
                let period = decision.new.map(|new| Span::from_ns(new.period_ns));
                following.holds(period, new, at.since(changed));
            }
        }
    }
    Ok((following, changed, jobs))
}

#[derive(Deserialize)]
struct LoggedDecision {
    at_ns: u64,
    what: String,
    new: Option<LoggedReservation>,
}

#[derive(Deserialize)]
struct LoggedReservation {
    period_ns: u64,
}

/// From the log of `rates`: the release of the first job with the `new` period, and all jobs.
fn judged(text: &str, new: Span) -> Option<(Instant, Judged)> {
    let mut changed = None;
    let job = |line: &str| {
        let fields: Vec<u64> = line
            .split(',')
            .map_while(|field| field.parse().ok())
            .collect();
        let [release, deadline, finished] = fields[..] else {
            return None;
        };
        let release = Instant::from_ns(release);
        if Instant::from_ns(deadline).since(release) == new {
            changed.get_or_insert(release);
        }
        Some((release, finished <= deadline))
    };
    let jobs = text.lines().skip(1).map(job).collect::<Option<_>>()?;
    Some((changed?, jobs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_change_is_the_first_job_with_the_new_period() {
        let log = "release_ns,deadline_ns,finished_ns\n0,10,5\n10,20,21\n20,24,24\n24,28,30\n";
        let (changed, jobs) = judged(log, Span::from_ns(4)).unwrap();
        assert_eq!(changed, Instant::from_ns(20));
        let in_time: Vec<bool> = jobs.iter().map(|job| job.1).collect();
        assert_eq!(in_time, [true, false, true, false]);
        assert!(judged(log, Span::from_ns(5)).is_none());
        assert!(judged("heading\n1,2\n", Span::from_ns(1)).is_none());
    }
}
