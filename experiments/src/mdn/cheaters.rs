//! What a program gains that says `mdn()` without reason: Fig. 7 of the paper, and worse.

use onbeat_model::{Instant, Span};
use onbeat_sim::workload::{Arrival, Demand, Film, Notifies};
use onbeat_sim::{Work, Workload};
use serde::Serialize;
use serde_json::json;

use super::guest::{self, Run, Told};
use super::paper::Program;
use super::progress::{misses, progress};
use super::simulated::{Setting, run as simulate, workload};
use super::{Outcome, Scheduler};
use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::{Ran, Table, publish};

const NAME: &str = "mdn-cheaters";

/// What it is run with.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Runs, each with other films
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u64).range(1..=100))]
    runs: u64,
    /// Run what Fig. 7 shows, and a flood, once on a kernel in a virtual machine instead
    #[arg(long)]
    guest: bool,
}

/// What is run in a guest: by whom it is scheduled, and who cheats.
const GUEST_SCHEDULERS: [Scheduler; 3] = [Scheduler::Linux24, Scheduler::Best, Scheduler::Berate];
const GUEST_CASES: [Case; 3] = [Case::Fig7a, Case::Fig7b, Case::Flood];

/// How long a run lasts; when the cheaters begin to cheat; and from when on they are judged, when what they had
/// earned before is forgotten.
const SECONDS: u64 = 30;
const CHANGE: u64 = 15;
const SETTLED: usize = 20;

/// Who cheats, and how.
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

    /// How many cheat, and how many CPU-bound programs are beside them.
    const fn programs(self) -> (usize, usize) {
        match self {
            Self::Fig7a | Self::Flood | Self::WithoutAPeriod => (1, 1),
            Self::Fig7b | Self::FloodAfterAPeriod => (1, 2),
            Self::Many => (4, 2),
        }
    }

    /// What a cheater does, or where it does not lie, the same without a notification.
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

    /// What srtgen is told of the cheater, for a guest; none if srtgen does nothing of the kind.
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

    /// The same for a guest.
    fn guest_run(self, scheduler: Scheduler, setting: Setting, lies: bool) -> Option<Run> {
        let bound = Told::new(Program::CpuBound, setting, 1, false);
        let bound = std::iter::repeat_n(bound, self.programs().1);
        Some(Run {
            name: format!("{self:?}.{scheduler:?}.{}", u8::from(lies)),
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

/// What a cheater had of the CPU, in percent, in the mean of all runs and cheaters.
#[derive(Clone, Copy, Debug, Serialize)]
struct Gain {
    case: Case,
    scheduler: Scheduler,
    /// An equal part for each program.
    fair: f64,
    /// In the five seconds after it began to cheat, without a notification and with them.
    honest_at_first: f64,
    lying_at_first: f64,
    /// From then on.
    honest: f64,
    lying: f64,
}

/// Runs each case with and without the notifications, and publishes what they were good for.
pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    let mut gains = Vec::new();
    let first = Setting::of_seed(1);
    if args.guest {
        return on_a_kernel(machine, first);
    }
    for case in Case::ALL {
        for scheduler in Scheduler::ALL {
            machine.go_on()?;
            gains.push(gain(case, scheduler, args.runs));
        }
    }
    for (letter, case) in FIGURES {
        let outcomes = case.run(Scheduler::Linux24, first, true);
        draw(machine, NAME, letter, case, &outcomes)?;
    }
    let ran = Ran::Computed(format!(
        "the simulated machine, {} runs of {SECONDS} s for each figure",
        args.runs
    ));
    publish(machine.out(), &ran, NAME, &table(&gains), &gains, paper())
}

/// The parts of Fig. 7.
const FIGURES: [(char, Case); 2] = [('a', Case::Fig7a), ('b', Case::Fig7b)];

/// The same where a kernel runs it.
fn on_a_kernel(machine: &Machine, setting: Setting) -> anyhow::Result<()> {
    let name = format!("{NAME}-guest");
    let each = GUEST_CASES.into_iter().flat_map(|case| {
        GUEST_SCHEDULERS.into_iter().flat_map(move |scheduler| {
            [false, true].map(|lies| Some((case, case.guest_run(scheduler, setting, lies)?)))
        })
    });
    let runs: Vec<(Case, Run)> = each.flatten().collect();
    let only: Vec<Run> = runs.iter().map(|(_, run)| run.clone()).collect();
    let guested = guest::boot(machine, &only, SECONDS)?;
    let mut gains = Vec::new();
    for pair in runs.chunks_exact(2) {
        let [(case, honest), (_, lying)] = pair else {
            continue;
        };
        let (honest_did, lying_did) = (guested.outcomes(honest)?, guested.outcomes(lying)?);
        let part = |outcomes: &[Outcome], from, to| {
            outcomes
                .first()
                .map_or(0.0, |did| did.cpu_percent(from, to))
        };
        let (change, end) = (CHANGE as usize, SECONDS as usize);
        let (cheaters, bound) = case.programs();
        gains.push(Gain {
            case: *case,
            scheduler: honest.scheduler,
            fair: 100.0 / (cheaters + bound) as f64,
            honest_at_first: part(&honest_did, change, SETTLED),
            lying_at_first: part(&lying_did, change, SETTLED),
            honest: part(&honest_did, SETTLED, end),
            lying: part(&lying_did, SETTLED, end),
        });
        let figure = FIGURES.iter().find(|(_, figure)| figure == case);
        if let Some((letter, _)) = figure
            && lying.scheduler == Scheduler::Linux24
        {
            draw(machine, &name, *letter, *case, &lying_did)?;
        }
    }
    let ran = guested.ran();
    publish(machine.out(), &ran, &name, &table(&gains), &gains, paper())
}

fn paper() -> serde_json::Value {
    json!({
        "source": "Banachowski, Wu and Brandt, Fig. 7",
        "a": "no gain",
        "b": "soon as fast as the other CPU-bound programs",
    })
}

fn gain(case: Case, scheduler: Scheduler, runs: u64) -> Gain {
    let (cheaters, bound) = case.programs();
    let mut gain = Gain {
        case,
        scheduler,
        fair: 100.0 / (cheaters + bound) as f64,
        honest_at_first: 0.0,
        lying_at_first: 0.0,
        honest: 0.0,
        lying: 0.0,
    };
    for seed in 1..=runs {
        let setting = Setting::of_seed(seed);
        for lies in [false, true] {
            let outcomes = case.run(scheduler, setting, lies);
            let mean = |from, to| {
                let cheaters = outcomes.iter().take(cheaters);
                let sum: f64 = cheaters.map(|outcome| outcome.cpu_percent(from, to)).sum();
                sum / case.programs().0 as f64 / runs as f64
            };
            let (first, then) = match lies {
                false => (&mut gain.honest_at_first, &mut gain.honest),
                true => (&mut gain.lying_at_first, &mut gain.lying),
            };
            *first += mean(CHANGE as usize, SETTLED);
            *then += mean(SETTLED, SECONDS as usize);
        }
    }
    gain
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
    let mut table = Table::new([
        "cheater's part of the CPU",
        "scheduler",
        "fair",
        "s 15-20, silent",
        "lying",
        "s 20-30, silent",
        "lying",
    ]);
    let percent = |part: f64| format!("{part:.1}%");
    for gain in gains {
        table.row([
            gain.case.name().to_owned(),
            gain.scheduler.name().to_owned(),
            percent(gain.fair),
            percent(gain.honest_at_first),
            percent(gain.lying_at_first),
            percent(gain.honest),
            percent(gain.lying),
        ]);
    }
    table
}
