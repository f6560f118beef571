//! How far each program gets: Fig. 5, 6, 8 and 10 of the paper, and the period that BEST measures,
//! its Fig. 9.

use onbeat_model::{Instant, Span};
use onbeat_policies::Best;
use serde::Serialize;

use super::paper::{HALF, MORE_THAN_HALF, Mix, OVERLOAD, THIRDS};
use super::run::{Bed, Known, Run};
use super::{Outcome, SAMPLE, Scheduler};
use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::{Table, yes_no};

const NAME: &str = "mdn-progress";

/// Which film.
const SEED: u64 = 1;

const FIGURES: [(u32, Scheduler, Mix); 5] = [
    (5, Scheduler::Linux24, HALF),
    (6, Scheduler::Linux24, THIRDS),
    (8, Scheduler::Best, OVERLOAD),
    (8, Scheduler::BestMeasuring, OVERLOAD),
    (10, Scheduler::Berate, MORE_THAN_HALF),
];

/// The program of the overload whose period Fig. 9 shows: the other has no period most of the time,
/// as EDF starves it.
const FASTER: usize = 1;
const SECONDS: u64 = 30;
/// Each figure's two halves: without MDN, and with it.
const WAYS: [(char, bool); 2] = [('a', false), ('b', true)];

const RUNS: u64 = 20;

/// How steady the progress of a program is, and how well BEST knows its period.
#[derive(Debug, Serialize)]
struct Steadiness {
    figure: u32,
    scheduler: Scheduler,
    mdn: bool,
    program: String,
    missed_percent: f64,
    cpu_percent: f64,
    /// The least CPU time that it had in any second, as a share of the mean.
    worst_second_percent: f64,
}

/// BEST's knowledge of a program's period in the course of a run.
#[derive(Debug, Serialize)]
struct Knowledge {
    scheduler: Scheduler,
    mdn: bool,
    program: String,
    runs: u64,
    /// The part of the time in which the measured period is within a quarter of the true one.
    right_percent: f64,
    /// The part of the time in which the program is taken to be periodic.
    well_behaved_percent: f64,
    off_ms: f64,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let bed = Bed::simulated(SECONDS);
    let mut steadiness = Vec::new();
    for (figure, scheduler, mix) in FIGURES {
        for (letter, mdn) in WAYS {
            let run = Run::of_mix(scheduler, mix, SEED, mdn);
            let outcomes = bed.outcomes(&[run])?.remove(0);
            // The paper's figures have the paper's rules.
            if scheduler != Scheduler::BestMeasuring {
                let with = if mdn { "with" } else { "without" };
                let title = format!("Fig. {figure} ({letter}): {}, {with} MDN", scheduler.name());
                let name = format!("{NAME}-fig{figure}{letter}");
                draw(machine, &name, title, mix, &outcomes)?;
            }
            steadiness.extend(steady((figure, scheduler, mix), mdn, &outcomes));
        }
    }
    let mut known = Vec::new();
    for scheduler in [Scheduler::Best, Scheduler::BestMeasuring] {
        for (letter, mdn) in WAYS {
            let run = |seed| Run::of_mix(scheduler, OVERLOAD, seed, mdn);
            if scheduler == Scheduler::Best {
                draw_periods(machine, letter, &bed.known(&run(SEED), FASTER))?;
            }
            for place in [0, 1] {
                let seen: Vec<_> = (1..=RUNS)
                    .map(|seed| bed.known(&run(seed), place))
                    .collect();
                known.push(knowledge((scheduler, mdn), place, &seen));
            }
        }
    }
    let told = format!("one run of {SECONDS} s for each figure, film {SEED}");
    let ran = bed.ran(machine, &told);
    machine.publish(&ran, NAME, &table(&steadiness), &steadiness)?;
    machine.publish(&ran, "mdn-period", &period_table(&known), &known)
}

fn steady(
    (figure, scheduler, mix): (u32, Scheduler, Mix),
    mdn: bool,
    outcomes: &[Outcome],
) -> impl Iterator<Item = Steadiness> {
    let programs = mix.programs.iter().zip(outcomes);
    let with_deadlines = programs.filter(|(program, _)| program.is_srt());
    with_deadlines.map(move |(program, outcome)| Steadiness {
        figure,
        scheduler,
        mdn,
        program: program.name(),
        missed_percent: outcome.missed_percent(),
        cpu_percent: outcome.cpu_percent(0, SECONDS as usize),
        worst_second_percent: worst_second(outcome),
    })
}

fn worst_second(outcome: &Outcome) -> f64 {
    let seconds = SECONDS as usize;
    let mean = outcome.cpu_percent(0, seconds);
    // Not the first, in which the scheduler knows nothing yet.
    let each = (1..seconds).map(|second| outcome.cpu_percent(second, second + 1));
    100.0 * each.fold(f64::INFINITY, f64::min) / mean.max(1e-9)
}

fn draw(
    machine: &Machine,
    name: &str,
    title: String,
    mix: Mix,
    outcomes: &[Outcome],
) -> anyhow::Result<()> {
    let lines =
        mix.programs.iter().zip(outcomes).map(|(program, outcome)| {
            Line::new(&program.name(), Look::Straight, progress(outcome))
        });
    let mut lines: Vec<Line> = lines.collect();
    for outcome in outcomes {
        let misses = misses(outcome);
        if !misses.is_empty() {
            lines.push(Line::new("missed deadline", Look::Points, misses));
        }
    }
    let had = outcomes
        .iter()
        .filter_map(|outcome| progress(outcome).last().map(|last| last.1));
    let figure_of = Figure {
        title,
        x: Axis::linear("time, s", 0.0..SECONDS as f64),
        y: Axis::linear(
            "progress: CPU time, s",
            -1.0..had.fold(1.0, f64::max) * 1.05,
        ),
        lines,
        names: Corner::UpperLeft,
    };
    figure_of.draw(machine.out(), name)
}

pub(super) fn progress(outcome: &Outcome) -> Vec<(f64, f64)> {
    let mut sum = Span::ZERO;
    let each = (1..).zip(&outcome.cpu).map(|(sample, had)| {
        sum += *had;
        ((SAMPLE * sample).as_secs_f64(), sum.as_secs_f64())
    });
    each.collect()
}

/// A point below the line of progress for each job that was late.
pub(super) fn misses(outcome: &Outcome) -> Vec<(f64, f64)> {
    let line = progress(outcome);
    let late = outcome.jobs.iter().filter(|(due, done)| done > due);
    late.filter_map(|(_, done)| {
        let sample = usize::try_from(done.as_ns() / SAMPLE.as_ns()).ok()?;
        let (_, had) = line.get(sample)?;
        Some((done.since(Instant::ZERO).as_secs_f64(), had - 0.5))
    })
    .collect()
}

fn draw_periods(machine: &Machine, letter: char, seen: &[(Instant, Known)]) -> anyhow::Result<()> {
    let with = if letter == 'a' { "without" } else { "with" };
    let measured = seen.iter().map(|(at, known)| {
        let period = Span::from_ns(known.period_ns).as_ms_f64();
        (at.since(Instant::ZERO).as_secs_f64(), period)
    });
    let truth = OVERLOAD.programs[FASTER].period().as_ms_f64();
    let figure = Figure {
        title: format!("Fig. 9 ({letter}): the period that BEST measures, {with} MDN"),
        x: Axis::linear("time, s", 0.0..SECONDS as f64),
        y: Axis::linear("period, ms", 0.0..200.0),
        lines: vec![
            Line::new("measured", Look::Steps, measured.collect()),
            Line::new(
                "true",
                Look::Straight,
                vec![(0.0, truth), (SECONDS as f64, truth)],
            ),
        ],
        names: Corner::UpperRight,
    };
    figure.draw(machine.out(), &format!("{NAME}-fig9{letter}"))
}

fn knowledge(
    (scheduler, mdn): (Scheduler, bool),
    place: usize,
    runs: &[Vec<(Instant, Known)>],
) -> Knowledge {
    let program = OVERLOAD.programs[place];
    let truth = program.period().as_ns();
    let confident = Best::default().params.confident;
    let (mut right, mut well_behaved, mut off, mut all) = (0_u64, 0_u64, 0, 0_u64);
    for (_, known) in runs.iter().flatten() {
        let apart = known.period_ns.abs_diff(truth);
        right += u64::from(apart <= truth / 4);
        well_behaved += u64::from(known.confidence >= confident);
        off += apart;
        all += 1;
    }
    let share = |count: u64| 100.0 * count as f64 / all.max(1) as f64;
    Knowledge {
        scheduler,
        mdn,
        program: program.name(),
        runs: runs.len() as u64,
        right_percent: share(right),
        well_behaved_percent: share(well_behaved),
        off_ms: off as f64 / 1e6 / all.max(1) as f64,
    }
}

fn table(rows: &[Steadiness]) -> Table {
    Table::of(rows, |row| {
        let worst = format!("{:.0}% of the mean", row.worst_second_percent);
        [
            ("figure", format!("Fig. {}", row.figure)),
            ("scheduler", row.scheduler.name().to_owned()),
            ("MDN", yes_no(row.mdn)),
            ("program", row.program.clone()),
            ("missed", format!("{:.1}%", row.missed_percent)),
            ("CPU", format!("{:.1}%", row.cpu_percent)),
            ("worst second", worst),
        ]
    })
}

fn period_table(rows: &[Knowledge]) -> Table {
    Table::of(rows, |row| {
        let right = format!("{:.1}% of the time", row.right_percent);
        let well_behaved = format!("{:.1}%", row.well_behaved_percent);
        [
            ("program", row.program.clone()),
            ("scheduler", row.scheduler.name().to_owned()),
            ("MDN", yes_no(row.mdn)),
            ("period known within a quarter", right),
            ("taken to be periodic", well_behaved),
            ("period off by", format!("{:.1} ms", row.off_ms)),
        ]
    })
}
