//! Programs that change their rate: how long the reservation takes to follow, and how many jobs are
//! late meanwhile.

mod following;
pub(crate) mod live;
mod programs;
mod run;

use onbeat_model::Span;
use rayon::prelude::*;
use serde::Serialize;

use crate::machine::Machine;
use crate::results::{Ran, Table, or_dash};
use crate::simulated::JobEnds;
use crate::statistics::{Interval, quantile};
use following::{FollowTimes, Late};
use programs::ProgramKind;
use run::{ProgramMethod, judged, run as run_one};

const NAME: &str = "rate-changes";
/// For how long jobs count after the reservation has followed.
const AFTER: Span = Span::from_secs(5);

/// Of each program, each with another moment of the change.
const RUNS: u64 = 20;

#[derive(Debug, Serialize)]
struct Row {
    program: &'static str,
    method: &'static str,
    /// In how many runs the reservation followed, and in how many of them it kept the new period.
    /// None where no loop follows.
    followed: Option<[usize; 2]>,
    known_ms: Vec<f64>,
    reserved_ms: Vec<f64>,
    late_meanwhile: Interval,
    jobs_meanwhile: f64,
    late_after: Interval,
    jobs_after: f64,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for kind in ProgramKind::ALL {
        machine.go_on()?;
        eprintln!("{}", kind.name());
        let seeds: Vec<u64> = (1..=RUNS).collect();
        let runs: Vec<_> = seeds.par_iter().map(|&seed| of_seed(kind, seed)).collect();
        let of_method = |(place, method)| {
            let of_runs = runs.iter().filter_map(|run| run.get(place).copied());
            Row::of(kind, method, &of_runs.collect::<Vec<_>>())
        };
        rows.extend(ProgramMethod::ALL.into_iter().enumerate().map(of_method));
    }
    let told =
        format!("simulated, one CPU, 4 hogs from 3 s on, {RUNS} runs of 20 s for each figure");
    let ran = Ran::computed(machine, told);
    machine.publish(&ran, NAME, &table(&rows, AFTER), &rows)
}

/// A run of the program under each method: how its reservation followed, and which jobs were late
/// until then and after it. Where no loop follows, the time is that of onbeat.
fn of_seed(kind: ProgramKind, seed: u64) -> Vec<(FollowTimes, [Late; 2])> {
    let program = kind.program(seed);
    let runs = ProgramMethod::ALL.map(|method| run_one(&program, method));
    let of_onbeat = runs.last().and_then(|(following, _)| following.reserved);
    let late_jobs = |(following, jobs): &(FollowTimes, JobEnds)| {
        let followed = following.reserved.or(of_onbeat).unwrap_or(Span::MAX);
        let judged = judged(jobs, &program);
        let late = Late::around(&judged, program.changed, followed, AFTER);
        (*following, late)
    };
    runs.iter().map(late_jobs).collect()
}

impl Row {
    fn of(kind: ProgramKind, method: ProgramMethod, runs: &[(FollowTimes, [Late; 2])]) -> Self {
        let ms = |of: fn(&FollowTimes) -> Option<Span>| -> Vec<f64> {
            let found = runs.iter().filter_map(|(following, _)| of(following));
            found.map(Span::as_ms_f64).collect()
        };
        let reserved_ms = ms(|following| following.reserved);
        let of = |figure: fn(&[Late; 2]) -> u32| {
            let figures: Vec<f64> = runs.iter().map(|(_, late)| figure(late).into()).collect();
            Interval::of(&figures)
        };
        let strayed = runs.iter().filter(|(following, _)| following.strayed);
        let kept = reserved_ms.len() - strayed.count();
        Self {
            program: kind.name(),
            method: method.name(),
            followed: method.is_onbeat().then_some([reserved_ms.len(), kept]),
            known_ms: ms(|following| following.known),
            reserved_ms,
            late_meanwhile: of(|late| late[0].late),
            jobs_meanwhile: of(|late| late[0].jobs).mean,
            late_after: of(|late| late[1].late),
            jobs_after: of(|late| late[1].jobs).mean,
        }
    }
}

fn table(rows: &[Row], after: Span) -> Table {
    let late_after = format!("late in the {} s after", after.as_secs_f64());
    Table::of(rows, |row| {
        let times = |ms: &[f64], p: f64| match ms {
            [] => "-".to_owned(),
            _ => format!("{:.0} ms", quantile(ms, p)),
        };
        let late = |late: Interval| format!("{:.1} ± {:.1}", late.mean, late.half);
        [
            ("program", row.program.to_owned()),
            ("scheduled by", row.method.to_owned()),
            (
                "followed, kept",
                or_dash(row.followed, |[all, kept]| format!("{all}, {kept}")),
            ),
            ("known: p50", times(&row.known_ms, 0.5)),
            ("max", times(&row.known_ms, 1.0)),
            ("reserved: p50", times(&row.reserved_ms, 0.5)),
            ("max", times(&row.reserved_ms, 1.0)),
            ("late meanwhile", late(row.late_meanwhile)),
            ("of", format!("{:.0}", row.jobs_meanwhile)),
            (&late_after, late(row.late_after)),
            ("of", format!("{:.0}", row.jobs_after)),
        ]
    })
}
