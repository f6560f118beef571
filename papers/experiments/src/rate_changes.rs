//! Programs that change their rate (`experiments/workloads/rates.c`) beside hogs: how long the
//! reservation takes to follow, and how many jobs are late meanwhile.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::log::numbers;
use crate::machine::{Hogs, Machine, Onbeat, compile};
use crate::results::{Ran, Table, or_dash};
use crate::statistics::{Interval, quantile};

const NAME: &str = "rate-changes";
/// Under onbeat; one without.
const RUNS: u64 = 5;
/// When the first run's program changes its rate, and by how much later each further run's does:
/// runs differ in how long ago the last analysis was.
const CHANGE_MS: u64 = 2000;
const LATER_MS: u64 = 53;
const SECONDS: u64 = 4;
/// For how long jobs count after the reservation has followed.
const AFTER_MS: f64 = 1000.0;
const HOGS_PER_CPU: usize = 4;
/// Beyond the program's execution time, for a budget by hand.
const SPARE: f64 = 1.1;
/// A period is the program's if it is off by less than one part in this many.
const SAME: f64 = 50.0;

/// The name; how it sleeps; period and execution time in us before the change, and after it.
const PROGRAMS: [(&str, &str, [[u64; 2]; 2]); 3] = [
    // The player sleeps for the time until the next frame.
    (
        "film, 25 to 30 Hz",
        "for",
        [[40_000, 12_000], [33_333, 12_000]],
    ),
    (
        "control loop with a timer, 100 to 250 Hz",
        "until",
        [[10_000, 1200], [4000, 1200]],
    ),
    // Its frames become harder, so that it shows one at every second refresh.
    (
        "game, 60 to 30 Hz",
        "for",
        [[16_667, 5000], [33_334, 10_000]],
    ),
];

/// onbeat first: the others' jobs count for as long as its reservation took.
const METHODS: [&str; 3] = [ONBEAT, BY_HAND, "default"];
const ONBEAT: &str = "onbeat";
/// A budget known beforehand that changes just before the first job at the new rate.
const BY_HAND: &str = "by hand";

/// One run: times count from the first release at the new rate, in ms.
struct ChangedRun {
    /// Of each job its release, and whether it was late.
    jobs: Vec<(f64, bool)>,
    /// When the reservation had the new period, and whether it had another one later.
    reserved_ms: Option<f64>,
    strayed: bool,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    machine.need_root()?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let binary = compile("workloads/rates.c", [], folder.path())?;
    let _hogs = Hogs::start(machine, HOGS_PER_CPU * Machine::cpus())?;
    let mut rows = Vec::new();
    for program in PROGRAMS {
        println!("{}: {} runs of {SECONDS} s ...", program.0, RUNS + 2);
        let mut of_onbeat = f64::INFINITY;
        for method in METHODS {
            let seeds = if method == ONBEAT { RUNS } else { 1 };
            let runs = (1..=seeds).map(|seed| run_one(machine, &binary, program, method, seed));
            let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
            rows.push(row(program.0, method, of_onbeat, &runs));
            let reserved_ms: Vec<f64> = runs.iter().filter_map(|run| run.reserved_ms).collect();
            if method == ONBEAT && !reserved_ms.is_empty() {
                of_onbeat = quantile(&reserved_ms, 0.5);
            }
        }
    }
    machine.publish(&Ran::live(machine), NAME, &Table::of(rows, |cells| cells));
    Ok(())
}

fn run_one(
    machine: &Machine,
    binary: &Path,
    (_, sleeps, rates): (&str, &str, [[u64; 2]; 2]),
    method: &str,
    seed: u64,
) -> anyhow::Result<ChangedRun> {
    let onbeat = Onbeat::new(machine, NAME)?;
    let log = machine.file(&format!("{NAME}.jobs"));
    let mut command = match method {
        ONBEAT => onbeat.run([""; 0], binary),
        _ => Command::new(binary),
    };
    let rate = |[period_us, run_us]: [u64; 2]| match method {
        BY_HAND => format!("{period_us}:{run_us}:{:.0}", run_us as f64 * SPARE),
        _ => format!("{period_us}:{run_us}"),
    };
    command
        .arg(&log)
        .arg(sleeps)
        .args([CHANGE_MS + LATER_MS * seed, SECONDS].map(|number| number.to_string()))
        .args(rates.map(rate))
        .stdout(Stdio::null());
    // A program that falls behind does each of its jobs all the same.
    let patience = Duration::from_secs(10 * SECONDS + 30);
    let messages = machine.file(&format!("{NAME}.stderr"));
    if !machine.run(command, &messages, patience)? {
        bail!("rates failed: see {}", messages.display());
    }
    let decisions = match method {
        ONBEAT => fs::read_to_string(onbeat.log())?,
        _ => String::new(),
    };
    changed_run(&numbers(&log)?, rates[1][0] as f64 * 1e3, &decisions)
}

#[derive(Deserialize)]
struct LoggedDecision {
    at_ns: f64,
    what: String,
    new: Option<LoggedReservation>,
}

#[derive(Deserialize)]
struct LoggedReservation {
    period_ns: f64,
}

/// From the log of `rates` (release, deadline and end of each job) and onbeat's.
fn changed_run(log: &[[f64; 3]], new_ns: f64, decisions: &str) -> anyhow::Result<ChangedRun> {
    let changed = log
        .iter()
        .find(|[release, deadline, _]| deadline - release == new_ns);
    let [changed_ns, ..] = *changed.context("its rate never changed")?;
    let since_ms = |ns: f64| (ns - changed_ns) / 1e6;
    let jobs = log
        .iter()
        .map(|[release, deadline, ended]| (since_ms(*release), ended > deadline));
    let mut run = ChangedRun {
        jobs: jobs.collect(),
        reserved_ms: None,
        strayed: false,
    };
    let ends_ms = run.jobs.last().map_or(0.0, |(at, _)| *at);
    for decision in decisions.lines() {
        let decision: LoggedDecision = serde_json::from_str(decision)?;
        let at_ms = since_ms(decision.at_ns);
        let is_done = ["reserved", "changed", "released"].contains(&&*decision.what);
        if !is_done || !(0.0..ends_ms).contains(&at_ms) {
            continue;
        }
        let is_new = |held: &LoggedReservation| (held.period_ns - new_ns).abs() * SAME < new_ns;
        if decision.new.as_ref().is_some_and(is_new) {
            run.reserved_ms.get_or_insert(at_ms);
        } else {
            run.strayed |= run.reserved_ms.is_some();
        }
    }
    Ok(run)
}

/// Where no loop follows, jobs count for as long as onbeat's reservation took.
fn row(
    program: &str,
    method: &str,
    of_onbeat: f64,
    runs: &[ChangedRun],
) -> [(&'static str, String); 9] {
    let reserved_ms: Vec<f64> = runs.iter().filter_map(|run| run.reserved_ms).collect();
    let kept = reserved_ms.len() - runs.iter().filter(|run| run.strayed).count();
    let followed = (method == ONBEAT).then(|| format!("{}, {kept}", reserved_ms.len()));
    let reserved = |p| {
        let of_runs = Some(&reserved_ms).filter(|of_runs| !of_runs.is_empty());
        or_dash(of_runs, |of_runs| format!("{:.0} ms", quantile(of_runs, p)))
    };
    let count = |is_after: bool| {
        let of_run = |run: &ChangedRun| {
            let followed = run.reserved_ms.unwrap_or(of_onbeat);
            let [from, until] = match is_after {
                false => [0.0, followed],
                true => [followed, followed + AFTER_MS],
            };
            let counted = run
                .jobs
                .iter()
                .filter(move |(at, _)| (from..until).contains(at));
            let late = counted.clone().filter(|(_, is_late)| *is_late).count();
            (late as f64, counted.count() as f64)
        };
        let (late, jobs): (Vec<f64>, Vec<f64>) = runs.iter().map(of_run).unzip();
        let Interval { mean, half } = Interval::of(&late);
        let jobs = format!("{:.0}", Interval::of(&jobs).mean);
        (format!("{mean:.1} ± {half:.1}"), jobs)
    };
    let (meanwhile, after) = (count(false), count(true));
    [
        ("program", program.to_owned()),
        ("scheduled by", method.to_owned()),
        ("followed, kept", or_dash(followed, |followed| followed)),
        ("reserved: p50", reserved(0.5)),
        ("max", reserved(1.0)),
        ("late meanwhile", meanwhile.0),
        ("of", meanwhile.1),
        ("late in the 1 s after", after.0),
        ("of", after.1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_count_from_the_change_until_the_reservation_has_followed_and_after_it() {
        let ms = |ms: f64| ms * 1e6;
        let job = |at: f64, period: f64, took: f64| [ms(at), ms(at + period), ms(at + took)];
        let log: Vec<[f64; 3]> = (0..3)
            .map(|n| job(f64::from(n) * 40.0, 40.0, 9.0))
            .collect();
        let new = (0..9).map(|n| {
            job(
                120.0 + f64::from(n) * 20.0,
                20.0,
                if n < 2 { 25.0 } else { 9.0 },
            )
        });
        let log: Vec<[f64; 3]> = log.into_iter().chain(new).collect();
        let decision = |at, period| {
            format!(
                "{{\"at_ns\":{},\"what\":\"changed\",\"new\":{{\"period_ns\":{}}}}}\n",
                ms(at),
                ms(period)
            )
        };
        let decisions = decision(100.0, 20.0) + &decision(150.0, 40.0) + &decision(170.0, 20.1);
        let run = changed_run(&log, ms(20.0), &decisions).unwrap();
        assert_eq!((run.reserved_ms, run.strayed), (Some(50.0), false));
        let strayed = decisions + &decision(200.0, 40.0);
        assert!(changed_run(&log, ms(20.0), &strayed).unwrap().strayed);
        assert!(changed_run(&log, ms(5.0), "").is_err());
    }
}
