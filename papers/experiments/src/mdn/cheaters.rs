//! The gain of a program that says `mdn()` without reason: Fig. 7 of the paper, and worse.

use onbeat_model::{Instant, Span};
use onbeat_sim::workload::{Arrival, Demand, Film, Notifies};
use onbeat_sim::{Work, Workload};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;

use super::guest::{self, Run, Told};
use super::paper::Program;
use super::progress::{misses, progress};
use super::simulated::{Setting, run as simulate, workload};
use super::{Outcome, Scheduler};
use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::{Ran, Table};
use crate::spread::Spread;

const NAME: &str = "mdn-cheaters";

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Runs of each, with other films [default: 10, or 1 with --guest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    runs: Option<u64>,
    /// Run what Fig. 7 shows, and a flood, on a kernel in a virtual machine instead
    #[arg(long)]
    guest: bool,
}

impl Args {
    /// Each film: the first has the number one.
    fn settings(&self) -> impl Iterator<Item = Setting> {
        let runs = self.runs.unwrap_or(if self.guest { 1 } else { 10 });
        (1..=runs).map(Setting::of_seed)
    }
}

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
const GUEST_SCHEDULERS: [Scheduler; 3] = [Scheduler::Linux24, Scheduler::Best, Scheduler::Berate];
const GUEST_CASES: [Case; 3] = [Case::Fig7a, Case::Fig7b, Case::Flood];

/// How long a run lasts; when the cheaters begin to cheat; and from when on they are judged, when
/// what they had earned before is forgotten.
const SECONDS: u64 = 30;
const CHANGE: u64 = 15;
const SETTLED: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
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

    /// A cheater's work, or where it does not lie, the same without a notification.
    fn cheater(self, setting: Setting, place: u64, lies: bool) -> Workload {
        let change = Instant::ZERO + Span::from_secs(CHANGE);
        let cries = |each: Span| match lies {
            true => Notifies::Every(Work::at_full_speed(each)),
            false => Notifies::Never,
        };
        let (thousand, million) = (cries(Span::from_ms(1)), cries(Span::from_us(1)));
        let when_late = if lies {
            Notifies::WhenLate
        } else {
            Notifies::Never
        };
        let srt =
            |permille, notifies| workload(Program::Srt(25, permille), setting, place, notifies);
        let bound = |notifies| workload(Program::CpuBound, setting, place, notifies);
        match self {
            Self::Fig7a => srt(500, when_late).then(change, srt(800, thousand)),
            Self::Fig7b => srt(400, when_late).then(change, bound(thousand)),
            Self::Flood => bound(million),
            Self::FloodAfterAPeriod => srt(400, when_late).then(change, bound(million)),
            Self::WithoutAPeriod => {
                let arrival = Arrival::Poisson {
                    mean: Span::from_ms(40),
                    last: Instant::ZERO,
                };
                let frames = Film::of_seed(setting.seed).varied(setting.variation);
                let demand = Demand::Decoder(Span::from_ms(16), frames);
                Workload::new(arrival, demand)
                    .notifying(thousand)
                    .seeded(setting.seed, place)
            }
            Self::Many => srt(150, when_late).then(change, bound(thousand)),
        }
    }

    /// srtgen's arguments for the cheater, in a guest; none if srtgen does nothing of the kind.
    fn told(self, setting: Setting, lies: bool) -> Option<Told> {
        let cries = |each_second: u32| if lies { each_second } else { 0 };
        let then = |share: u32, cry: u32| {
            format!(
                "change_s={CHANGE}+share_then={share}+cry_then={}",
                cries(cry)
            )
        };
        let srt = |permille| Told::new(Program::Srt(25, permille), setting, 0, lies);
        Some(match self {
            Self::Fig7a => srt(500).and(&then(800, 1000)),
            Self::Fig7b => srt(400).and(&then(1000, 1000)),
            Self::FloodAfterAPeriod => srt(400).and(&then(1000, 1_000_000)),
            Self::Flood => Told::new(Program::CpuBound, setting, 0, lies)
                .and(&format!("cry={}", cries(1_000_000))),
            Self::WithoutAPeriod | Self::Many => return None,
        })
    }

    fn guest_run(self, scheduler: Scheduler, setting: Setting, lies: bool) -> Option<Run> {
        let bound = Told::new(Program::CpuBound, setting, 1, false);
        let bound = std::iter::repeat_n(bound, self.programs().1);
        Some(Run {
            name: format!("{self:?}.{scheduler:?}.{}.{}", u8::from(lies), setting.seed),
            scheduler,
            mdn: true,
            programs: std::iter::once(self.told(setting, lies)?)
                .chain(bound)
                .collect(),
        })
    }

    fn run(self, scheduler: Scheduler, setting: Setting, lies: bool) -> Vec<Outcome> {
        let (cheaters, bound) = self.programs();
        let cheaters = (0..cheaters as u64).map(|place| self.cheater(setting, place, lies));
        let bound = (0..bound).map(|_| workload(Program::CpuBound, setting, 0, Notifies::Never));
        let programs = cheaters.chain(bound).collect();
        simulate(scheduler, programs, Span::from_secs(SECONDS))
    }
}

/// A cheater's share of the CPU, in percent, over all runs; where several cheat, in their mean.
#[derive(Clone, Copy, Debug, Serialize)]
struct Gain {
    case: Case,
    scheduler: Scheduler,
    fair: f64,
    /// In the five seconds after it began to cheat, without a notification and with them.
    honest_at_first: Spread,
    lying_at_first: Spread,
    honest: Spread,
    lying: Spread,
}

/// The outcomes of the programs of a case in one run without a notification, and in one with them.
type Ways = (Vec<Outcome>, Vec<Outcome>);

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    if args.guest {
        return on_a_kernel(machine, args);
    }
    let mut gains = Vec::new();
    for case in Case::ALL {
        for scheduler in SCHEDULERS {
            machine.go_on()?;
            let way = |setting, lies| case.run(scheduler, setting, lies);
            let settings: Vec<Setting> = args.settings().collect();
            let runs: Vec<Ways> = settings
                .par_iter()
                .map(|setting| (way(*setting, false), way(*setting, true)))
                .collect();
            draw_first(machine, NAME, case, scheduler, &runs)?;
            gains.push(gain(case, scheduler, &runs));
        }
    }
    let ran = Ran::Computed(format!(
        "the simulated machine, {} runs of {SECONDS} s for each figure",
        args.settings().count()
    ));
    machine.publish(&ran, NAME, &table(&gains), &gains, paper())
}

const FIGURES: [(char, Case); 2] = [('a', Case::Fig7a), ('b', Case::Fig7b)];

fn on_a_kernel(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    let name = format!("{NAME}-guest");
    let mut all: Vec<(Case, Scheduler, Vec<[Run; 2]>)> = Vec::new();
    for case in GUEST_CASES {
        for scheduler in GUEST_SCHEDULERS {
            let way = |setting, lies| case.guest_run(scheduler, setting, lies);
            let runs = args
                .settings()
                .map(|s| Some([way(s, false)?, way(s, true)?]));
            all.push((case, scheduler, runs.flatten().collect()));
        }
    }
    let each = all.iter().flat_map(|(.., runs)| runs.iter().flatten());
    let each: Vec<Run> = each.cloned().collect();
    let guested = guest::boot(machine, 0, &each, SECONDS)?;
    let mut gains = Vec::new();
    for (case, scheduler, runs) in all {
        let ways = |[honest, lying]: &[Run; 2]| {
            anyhow::Ok((guested.outcomes(honest)?, guested.outcomes(lying)?))
        };
        let runs = runs
            .iter()
            .map(ways)
            .collect::<anyhow::Result<Vec<Ways>>>()?;
        draw_first(machine, &name, case, scheduler, &runs)?;
        gains.push(gain(case, scheduler, &runs));
    }
    let ran = guested.ran();
    machine.publish(&ran, &name, &table(&gains), &gains, paper())
}

fn paper() -> serde_json::Value {
    json!({
        "source": "Banachowski, Wu and Brandt, Fig. 7",
        "a": "no gain",
        "b": "soon as fast as the other CPU-bound programs",
    })
}

fn gain(case: Case, scheduler: Scheduler, runs: &[Ways]) -> Gain {
    let (cheaters, bound) = case.programs();
    let mean = |outcomes: &[Outcome], from, to| {
        let each = outcomes.iter().take(cheaters);
        each.map(|outcome| outcome.cpu_percent(from, to))
            .sum::<f64>()
            / cheaters as f64
    };
    let spread = |lies, from, to| {
        let way = |(honest, lying): &Ways| mean(if lies { lying } else { honest }, from, to);
        Spread::of(&runs.iter().map(way).collect::<Vec<_>>())
    };
    let (change, end) = (CHANGE as usize, SECONDS as usize);
    Gain {
        case,
        scheduler,
        fair: 100.0 / (cheaters + bound) as f64,
        honest_at_first: spread(false, change, SETTLED),
        lying_at_first: spread(true, change, SETTLED),
        honest: spread(false, SETTLED, end),
        lying: spread(true, SETTLED, end),
    }
}

fn draw_first(
    machine: &Machine,
    name: &str,
    case: Case,
    scheduler: Scheduler,
    runs: &[Ways],
) -> anyhow::Result<()> {
    let figure = FIGURES.iter().find(|(_, figure)| *figure == case);
    if let (Some((letter, _)), Scheduler::Linux24, Some((_, lying))) =
        (figure, scheduler, runs.first())
    {
        draw(machine, name, *letter, case, lying)?;
    }
    Ok(())
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

fn table(gains: &[Gain]) -> Table {
    let part = |Spread { mean, deviation }| format!("{mean:.1} ±{deviation:.1}%");
    Table::of(gains, |gain| {
        [
            ("cheater's part of the CPU", gain.case.name().to_owned()),
            ("scheduler", gain.scheduler.name().to_owned()),
            ("fair", format!("{:.1}%", gain.fair)),
            ("s 15-20, silent", part(gain.honest_at_first)),
            ("lying", part(gain.lying_at_first)),
            ("s 20-30, silent", part(gain.honest)),
            ("lying", part(gain.lying)),
        ]
    })
}
