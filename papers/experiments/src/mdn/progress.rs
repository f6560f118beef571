//! How far each program gets: Fig. 5, 6, 8 and 10 of the paper, and the period that BEST measures,
//! its Fig. 9.

use onbeat_model::{Instant, Span};
use onbeat_policies::Best;

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

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let bed = Bed::simulated(SECONDS);
    let mut steadiness: Vec<[(&str, String); 7]> = Vec::new();
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
    machine.publish(&ran, NAME, &Table::of(steadiness, |cells| cells));
    machine.publish(&ran, "mdn-period", &Table::of(known, |cells| cells));
    Ok(())
}

/// How steady the progress of each program with deadlines is.
fn steady(
    (figure, scheduler, mix): (u32, Scheduler, Mix),
    mdn: bool,
    outcomes: &[Outcome],
) -> impl Iterator<Item = [(&'static str, String); 7]> {
    let programs = mix.programs.iter().zip(outcomes);
    let with_deadlines = programs.filter(|(program, _)| program.is_srt());
    with_deadlines.map(move |(program, outcome)| {
        let cpu = outcome.cpu_percent(0, SECONDS as usize);
        [
            ("figure", format!("Fig. {figure}")),
            ("scheduler", scheduler.name().to_owned()),
            ("MDN", yes_no(mdn)),
            ("program", program.name()),
            ("missed", format!("{:.1}%", outcome.missed_percent())),
            ("CPU", format!("{cpu:.1}%")),
            (
                "worst second",
                format!("{:.0}% of the mean", worst_second(outcome)),
            ),
        ]
    })
}

/// The least CPU time that it had in any second, in percent of the mean.
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

/// BEST's knowledge of a program's period in the course of these runs: for how much of the time the
/// measured one is within a quarter of the true one, and the program is taken to be periodic.
fn knowledge(
    (scheduler, mdn): (Scheduler, bool),
    place: usize,
    runs: &[Vec<(Instant, Known)>],
) -> [(&'static str, String); 6] {
    let program = OVERLOAD.programs[place];
    let truth = program.period().as_ns();
    let confident = Best::default().params.confident;
    let known = || runs.iter().flatten().map(|(_, known)| known);
    let apart = |known: &Known| known.period_ns.abs_diff(truth);
    let all = known().count().max(1) as f64;
    let right = known().filter(|known| apart(known) <= truth / 4).count();
    let well_behaved = known()
        .filter(|known| known.confidence >= confident)
        .count();
    let off_ns: u64 = known().map(apart).sum();
    let share = |count: usize| format!("{:.1}%", 100.0 * count as f64 / all);
    [
        ("program", program.name()),
        ("scheduler", scheduler.name().to_owned()),
        ("MDN", yes_no(mdn)),
        (
            "period known within a quarter",
            format!("{} of the time", share(right)),
        ),
        ("taken to be periodic", share(well_behaved)),
        (
            "period off by",
            format!("{:.1} ms", off_ns as f64 / 1e6 / all),
        ),
    ]
}
