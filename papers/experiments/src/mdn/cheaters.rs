//! The gain of a program that says `mdn()` without reason: Fig. 7 of the paper, and worse.

use onbeat_model::Span;

use super::paper::Program;
use super::progress::{misses, progress};
use super::run::{Bed, CHANGE, Run, RunProgram};
use super::{Outcome, Scheduler};
use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::Table;
use crate::statistics::Spread;

const NAME: &str = "mdn-cheaters";

/// Runs of each, with other films; on a kernel one.
const RUNS: u64 = 10;

const SCHEDULERS: [Scheduler; 7] = [
    Scheduler::Linux24,
    Scheduler::Best,
    Scheduler::BestMeasuring,
    Scheduler::Berate,
    Scheduler::Eevdf,
    Scheduler::Onbeat,
    Scheduler::OnbeatHard,
];

/// The runs in a guest: by whom it is scheduled, and who cheats.
const GUEST_SCHEDULERS: [Scheduler; 4] = [
    Scheduler::Linux24,
    Scheduler::Best,
    Scheduler::Berate,
    Scheduler::Onbeat,
];
const GUEST_CASES: [Case; 3] = [Case::Fig7a, Case::Fig7b, Case::Flood];

/// How long a run lasts, and from when on cheaters are judged, when what they had earned before is
/// forgotten.
const SECONDS: u64 = 30;
const SETTLED: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// From 50% to 80%, notifying a thousand times a second of its computing.
    Fig7a,
    /// From 40% to CPU-bound, likewise.
    Fig7b,
    /// CPU-bound from the begin, with a million notifications a second.
    Flood,
    /// The cheater of Fig. 7 (b) with a million a second.
    FloodAfterAPeriod,
    /// Jobs at random that need 40%, a thousand notifications a second.
    WithoutAPeriod,
    /// Four of Fig. 7 (b), from 15% each.
    Many,
}

impl Case {
    const ALL: [Self; 6] = [
        Self::Fig7a,
        Self::Fig7b,
        Self::Flood,
        Self::FloodAfterAPeriod,
        Self::WithoutAPeriod,
        Self::Many,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Fig7a => "Fig. 7 (a): 50%, then 80% and 1000/s",
            Self::Fig7b => "Fig. 7 (b): 40%, then CPU-bound and 1000/s",
            Self::Flood => "CPU-bound, 1,000,000/s",
            Self::FloodAfterAPeriod => "40%, then CPU-bound and 1,000,000/s",
            Self::WithoutAPeriod => "random jobs of 40%, 1000/s",
            Self::Many => "four from 15% to CPU-bound, 1000/s each",
        }
    }

    const fn programs(self) -> (usize, usize) {
        match self {
            Self::Fig7a | Self::Flood | Self::WithoutAPeriod => (1, 1),
            Self::Fig7b | Self::FloodAfterAPeriod => (1, 2),
            Self::Many => (4, 2),
        }
    }

    /// A cheater, or where it does not lie, the same without a notification.
    fn cheater(self, seed: u64, place: u64, lies: bool) -> RunProgram {
        let program = |program, lies| RunProgram::new(program, Span::ZERO, seed, place, lies);
        let srt = |share| program(Program::Srt(25, share), lies);
        let bound = program(Program::CpuBound, false);
        let cries = |each_second: u64| if lies { each_second } else { 0 };
        match self {
            Self::Fig7a => srt(500).then(srt(800), cries(1000)),
            Self::Fig7b => srt(400).then(bound, cries(1000)),
            Self::Flood => bound.crying(cries(1_000_000)),
            Self::FloodAfterAPeriod => srt(400).then(bound, cries(1_000_000)),
            Self::WithoutAPeriod => RunProgram::without_a_period(seed, place, cries(1000)),
            Self::Many => srt(150).then(bound, cries(1000)),
        }
    }

    /// Each film without a notification, and with them.
    fn runs(self, scheduler: Scheduler, runs: u64) -> Vec<Run> {
        let ways = |seed| [false, true].map(|lies| self.run(scheduler, seed, lies));
        (1..=runs).flat_map(ways).collect()
    }

    fn run(self, scheduler: Scheduler, seed: u64, lies: bool) -> Run {
        let (cheaters, bound) = self.programs();
        let cheaters = (0..cheaters as u64).map(|place| self.cheater(seed, place, lies));
        let hog = RunProgram::new(Program::CpuBound, Span::ZERO, seed, 0, false);
        Run {
            name: format!("{self:?}.{scheduler:?}.{}.{seed}", u8::from(lies)),
            scheduler,
            mdn: true,
            programs: cheaters.chain(std::iter::repeat_n(hog, bound)).collect(),
        }
    }
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let cases = cases(&Case::ALL, &SCHEDULERS);
    let told = format!("{RUNS} runs of {SECONDS} s for each figure");
    publish(machine, NAME, &Bed::simulated(SECONDS), &cases, RUNS, &told)
}

/// What Fig. 7 shows, and a flood, of one film.
pub(crate) fn run_on_a_kernel(machine: &Machine) -> anyhow::Result<()> {
    let cases = cases(&GUEST_CASES, &GUEST_SCHEDULERS);
    let runs = cases
        .iter()
        .flat_map(|(case, scheduler)| case.runs(*scheduler, 1));
    let bed = Bed::booted(machine, &runs.collect::<Vec<Run>>(), SECONDS)?;
    publish(machine, "mdn-cheaters-guest", &bed, &cases, 1, "")
}

fn cases(cases: &[Case], schedulers: &[Scheduler]) -> Vec<(Case, Scheduler)> {
    let each = |&case| schedulers.iter().map(move |&scheduler| (case, scheduler));
    cases.iter().flat_map(each).collect()
}

fn publish(
    machine: &Machine,
    name: &str,
    bed: &Bed,
    cases: &[(Case, Scheduler)],
    runs: u64,
    told: &str,
) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for &(case, scheduler) in cases {
        machine.go_on()?;
        let outcomes = bed.outcomes(&case.runs(scheduler, runs))?;
        let figure = FIGURES.iter().find(|(_, figure)| *figure == case);
        if let (Some((letter, _)), Scheduler::Linux24, Some(lying)) =
            (figure, scheduler, outcomes.get(1))
        {
            draw(machine, name, *letter, case, lying)?;
        }
        rows.extend(gain(case, scheduler, &outcomes));
    }
    let table = Table::of(rows, |cells| cells);
    machine.publish(&bed.ran(machine, told), name, &table);
    Ok(())
}

const FIGURES: [(char, Case); 2] = [('a', Case::Fig7a), ('b', Case::Fig7b)];

/// A cheater's share of the CPU in runs without a notification and with them by turns, first in
/// the five seconds after it began to cheat; of several the mean. None where lying and silence
/// differ by less than half a point.
fn gain(
    case: Case,
    scheduler: Scheduler,
    outcomes: &[Vec<Outcome>],
) -> Option<[(&'static str, String); 7]> {
    let (cheaters, bound) = case.programs();
    let mean = |outcomes: &Vec<Outcome>, from, to| {
        let each = outcomes.iter().take(cheaters);
        let sum: f64 = each.map(|outcome| outcome.cpu_percent(from, to)).sum();
        sum / cheaters as f64
    };
    let part = |lies: bool, from, to| {
        let runs = outcomes.iter().skip(usize::from(lies)).step_by(2);
        let of_runs: Vec<f64> = runs.map(|run| mean(run, from, to)).collect();
        Spread::of(&of_runs)
    };
    let periods = [(CHANGE as usize, SETTLED), (SETTLED, SECONDS as usize)];
    let parts = periods.map(|(from, to)| [false, true].map(|lies| part(lies, from, to)));
    let differ = |[silent, lying]: &[Spread; 2]| (silent.mean - lying.mean).abs() >= 0.5;
    let told = |Spread { mean, deviation }| format!("{mean:.1} ±{deviation:.1}%");
    let [[a, b], [c, d]] = parts.map(|parts| parts.map(told));
    parts.iter().any(differ).then(|| {
        [
            ("cheater's part of the CPU", case.name().to_owned()),
            ("scheduler", scheduler.name().to_owned()),
            ("fair", format!("{:.1}%", 100.0 / (cheaters + bound) as f64)),
            ("s 15-20, silent", a),
            ("lying", b),
            ("s 20-30, silent", c),
            ("lying", d),
        ]
    })
}

fn draw(
    machine: &Machine,
    name: &str,
    letter: char,
    case: Case,
    outcomes: &[Outcome],
) -> anyhow::Result<()> {
    let (cheaters, _) = case.programs();
    let called = |place: usize| {
        if place < cheaters {
            "cheater"
        } else {
            "CPU-bound"
        }
    };
    let mut lines: Vec<Line> = outcomes
        .iter()
        .enumerate()
        .map(|(place, outcome)| Line::new(called(place), Look::Straight, progress(outcome)))
        .collect();
    lines.extend(
        outcomes
            .iter()
            .take(cheaters)
            .map(|outcome| Line::new("missed deadline", Look::Points, misses(outcome))),
    );
    let figure = Figure {
        title: format!("Fig. 7 ({letter}): Linux 2.4, it cheats from second 15 on"),
        x: Axis::linear("time, s", 0.0..SECONDS as f64),
        y: Axis::linear("progress: CPU time, s", -1.0..16.0),
        lines,
        names: Corner::UpperLeft,
    };
    figure.draw(machine.out(), &format!("{name}-fig7{letter}"))
}
