//! Missed deadlines and CPU time with and without MDN: both tables of the paper, and the same for
//! the other schedulers.

use anyhow::Context;
use clap::ValueEnum;
use onbeat_model::Span;
use onbeat_sim::workload::Notifies;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;

use super::guest::{self, Guested, Run};
use super::paper::{Line, MIXES, Mix, TABLES};
use super::simulated::{Setting, run as simulate, workload};
use super::{Outcome, Scheduler, VARIATION};
use crate::machine::Machine;
use crate::results::{Ran, Table, or_dash};
use crate::spread::Spread;

const NAME: &str = "mdn-deadlines";
const SECONDS: u64 = 100;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Runs of each, with other films [default: 50, or 1 with --guest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: Option<u64>,
    /// Only under these schedulers
    #[arg(long, value_enum, value_name = "SCHEDULER", value_delimiter = ',')]
    only: Vec<Scheduler>,
    /// For how long a run lasts, in virtual time
    #[arg(long, value_name = "SECONDS", default_value_t = SECONDS,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seconds: u64,
    /// How different the frames are, in permille of srtgen's default
    #[arg(long, value_name = "PERMILLE", default_value_t = VARIATION,
          value_parser = clap::value_parser!(u32).range(0..=3000))]
    variation: u32,
    /// The programs' timers fire only at multiples of this time in ms, as on the paper's machines
    /// with 10; 0: exactly
    #[arg(long, value_name = "MS", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(0..=100))]
    timer_ms: u64,
    /// Run each for SECONDS on a kernel in a virtual machine instead
    #[arg(long, value_name = "SECONDS", conflicts_with = "timer_ms",
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    guest: Option<u64>,
    /// Each film on another image of that machine
    #[arg(long, requires = "guest")]
    images: bool,
}

impl Args {
    fn runs(&self) -> u64 {
        self.runs
            .unwrap_or(if self.guest.is_some() { 1 } else { 50 })
    }

    /// Each film: the first has the number one.
    fn settings(&self) -> impl Iterator<Item = Setting> {
        (1..=self.runs()).map(|seed| Setting {
            seed,
            variation: self.variation,
            timer: Span::from_ms(self.timer_ms),
        })
    }

    fn schedulers(&self) -> Vec<Scheduler> {
        let variants = Scheduler::VARIANTS.into_iter();
        let variants = variants.filter(|_| self.guest.is_none());
        let all = Scheduler::ALL.into_iter().chain(variants);
        all.filter(|scheduler| self.only.is_empty() || self.only.contains(scheduler))
            .collect()
    }
}

/// One program of a mix under one scheduler, in percent, over all runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) missed: Spread,
    pub(super) missed_mdn: Spread,
    cpu: Spread,
    cpu_mdn: Spread,
}

#[derive(Debug, Serialize)]
struct Result {
    scheduler: Scheduler,
    mix: &'static str,
    program: String,
    #[serde(flatten)]
    figures: Figures,
}

/// The outcomes of the programs of a mix in one run without MDN, and in one with it.
pub(super) type Ways = (Vec<Outcome>, Vec<Outcome>);

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    let guests = match args.guest {
        Some(seconds) => boot(machine, args, seconds)?,
        None => Vec::new(),
    };
    let guested = guests.first();
    let seconds = args.guest.unwrap_or(args.seconds);
    let mut results = Vec::new();
    for scheduler in args.schedulers() {
        for mix in MIXES {
            machine.go_on()?;
            let settings: Vec<Setting> = args.settings().collect();
            let runs = if guests.is_empty() {
                both(scheduler, mix, &settings, seconds)
            } else {
                // One for all films, or one for each.
                let each = settings.iter().zip(guests.iter().cycle());
                each.map(|(setting, guested)| on_a_kernel(guested, scheduler, mix, *setting))
                    .collect::<anyhow::Result<Vec<Ways>>>()?
            };
            for (place, program) in mix.programs.iter().enumerate() {
                results.push(Result {
                    scheduler,
                    mix: mix.name,
                    program: program.name(),
                    figures: figures(&runs, place, seconds as usize),
                });
            }
        }
    }
    let (ran, suffix) = match guested {
        Some(guested) => (guested.ran(), "-guest"),
        None => (simulated(args), ""),
    };
    let paper = json!({
        "source": "Banachowski, Wu and Brandt, the tables of sections 4.1 and 4.3",
        "percent": TABLES.iter().flat_map(|(scheduler, mix, lines)| {
            mix.programs.iter().zip(*lines).map(move |(program, line)| json!({
                "scheduler": scheduler,
                "mix": mix.name,
                "program": program.name(),
                "missed": line.missed.map(|missed| missed.0),
                "missed_mdn": line.missed.map(|missed| missed.1),
                "cpu": line.cpu.0,
                "cpu_mdn": line.cpu.1,
            }))
        }).collect::<Vec<_>>(),
    });
    machine.publish(
        &ran,
        &format!("{NAME}{suffix}"),
        &the_papers(&results),
        &results,
        paper.clone(),
    )?;
    if guested.is_some() {
        // A table each, so that one may be taken again without the others.
        for results in results.chunk_by(|a, b| a.scheduler == b.scheduler) {
            let scheduler = results
                .first()
                .and_then(|of| of.scheduler.to_possible_value());
            let scheduler = scheduler.context("a scheduler without a name")?;
            let name = format!("mdn-schedulers-guest-{}", scheduler.get_name());
            let table = all(results);
            machine.publish(&ran, &name, &table, &results, paper.clone())?;
        }
        return Ok(());
    }
    let table = all(&results);
    machine.publish(&ran, "mdn-schedulers", &table, &results, paper)
}

fn simulated(args: &Args) -> Ran {
    Ran::Computed(format!(
        "the simulated machine: {} runs of {} s for each figure, srtgen's frames with variation {}, timers that fire {}",
        args.runs(),
        args.seconds,
        args.variation,
        match args.timer_ms {
            0 => "exactly".to_owned(),
            ms => format!("every {ms} ms"),
        },
    ))
}

/// All runs on a kernel, one after the other: on one image, or each film on one of its own.
fn boot(machine: &Machine, args: &Args, seconds: u64) -> anyhow::Result<Vec<Guested>> {
    let settings: Vec<Setting> = args.settings().collect();
    let on_one = if args.images { 1 } else { settings.len() };
    let images = (0..).zip(settings.chunks(on_one));
    let booted = images.map(|(image, settings)| {
        let each = args.schedulers().into_iter().flat_map(|scheduler| {
            let mixes = MIXES.into_iter().map(move |mix| (scheduler, mix));
            mixes.flat_map(|(scheduler, mix)| runs_of(scheduler, mix, settings))
        });
        guest::boot(machine, image, &each.collect::<Vec<Run>>(), seconds)
    });
    booted.collect()
}

fn runs_of(scheduler: Scheduler, mix: Mix, settings: &[Setting]) -> Vec<Run> {
    // The kernel's own does not listen.
    let ways = if listens(scheduler) {
        &[false, true][..]
    } else {
        &[false]
    };
    let of = |setting: &Setting| {
        let setting = *setting;
        ways.iter()
            .map(move |&mdn| Run::of_mix(scheduler, mix, setting, mdn))
    };
    settings.iter().flat_map(of).collect()
}

fn on_a_kernel(
    guested: &Guested,
    scheduler: Scheduler,
    mix: Mix,
    setting: Setting,
) -> anyhow::Result<Ways> {
    let outcomes = |mdn| {
        let run = Run::of_mix(scheduler, mix, setting, mdn && listens(scheduler));
        guested.outcomes(&run)
    };
    Ok((outcomes(false)?, outcomes(true)?))
}

const fn listens(scheduler: Scheduler) -> bool {
    !matches!(scheduler, Scheduler::Eevdf | Scheduler::EevdfShort)
}

pub(super) fn both(
    scheduler: Scheduler,
    mix: Mix,
    settings: &[Setting],
    seconds: u64,
) -> Vec<Ways> {
    let of_setting = |setting: &Setting| {
        let way = |notifies| once(scheduler, mix, *setting, notifies, seconds);
        (way(Notifies::Never), way(Notifies::WhenLate))
    };
    settings.par_iter().map(of_setting).collect()
}

pub(super) fn figures(runs: &[Ways], place: usize, seconds: usize) -> Figures {
    let spread = |of: &dyn Fn(&Ways) -> f64| Spread::of(&runs.iter().map(of).collect::<Vec<_>>());
    Figures {
        missed: spread(&|(without, _)| without[place].missed_percent()),
        missed_mdn: spread(&|(_, with)| with[place].missed_percent()),
        cpu: spread(&|(without, _)| without[place].cpu_percent(0, seconds)),
        cpu_mdn: spread(&|(_, with)| with[place].cpu_percent(0, seconds)),
    }
}

pub(super) fn once(
    scheduler: Scheduler,
    mix: Mix,
    setting: Setting,
    notifies: Notifies,
    seconds: u64,
) -> Vec<Outcome> {
    let setting = Setting {
        timer: setting.timer.max(scheduler.tick()),
        ..setting
    };
    let programs = (0..)
        .zip(mix.programs)
        .map(|(place, program)| workload(*program, setting, place, notifies))
        .collect();
    simulate(scheduler, programs, Span::from_secs(seconds))
}

fn of(results: &[Result], scheduler: Scheduler, mix: Mix) -> impl Iterator<Item = &Result> {
    let of_this = move |result: &&Result| result.scheduler == scheduler && result.mix == mix.name;
    results.iter().filter(of_this)
}

fn percent(figure: f64) -> String {
    format!("{figure:.1}%")
}

pub(super) fn missed(Spread { mean, deviation }: Spread) -> String {
    let digits = if mean < 1.0 { 2 } else { 1 };
    format!("{mean:.digits$} ±{deviation:.digits$}%")
}

fn the_papers(results: &[Result]) -> Table {
    let tables = TABLES.into_iter().flat_map(|(scheduler, mix, lines)| {
        let each = std::iter::once(scheduler).chain(scheduler.of_its_time());
        each.map(move |scheduler| (scheduler, mix, lines))
    });
    let rows = tables.flat_map(|(scheduler, mix, lines)| of(results, scheduler, mix).zip(lines));
    Table::of(rows, |(result, Line { missed: paper, cpu })| {
        let got = result.figures;
        let processes = format!("{}: {}", result.scheduler.name(), result.program);
        let ours = |spread| or_dash(*paper, |_| missed(spread));
        [
            ("processes", processes),
            ("missed", ours(got.missed)),
            ("paper", or_dash(*paper, |paper| format!("{}%", paper.0))),
            ("missed, MDN", ours(got.missed_mdn)),
            ("paper", or_dash(*paper, |paper| format!("{}%", paper.1))),
            ("CPU", percent(got.cpu.mean)),
            ("paper", percent(cpu.0)),
            ("CPU, MDN", percent(got.cpu_mdn.mean)),
            ("paper", percent(cpu.1)),
        ]
    })
}

/// Missed deadlines of each soft real-time program under each scheduler that was run, without and
/// with MDN.
fn all(results: &[Result]) -> Table {
    let schedulers = Scheduler::ALL.into_iter().chain(Scheduler::VARIANTS);
    let ran = |of: &Scheduler| results.iter().any(|result| result.scheduler == *of);
    let schedulers: Vec<Scheduler> = schedulers.filter(ran).collect();
    let headings = ["missed, without and with MDN"].into_iter();
    let headings = headings.chain(schedulers.iter().map(|scheduler| scheduler.name()));
    let mut table = Table::of_columns(headings.map(str::to_owned).collect());
    for mix in MIXES {
        for (place, program) in mix.programs.iter().enumerate() {
            if !program.is_srt() {
                continue;
            }
            let beside = mix.programs.len() - 1;
            let cell = |scheduler| {
                let result = of(results, scheduler, mix).nth(place);
                result.map_or_else(
                    || "-".to_owned(),
                    |Result { figures, .. }| {
                        format!("{} {}", missed(figures.missed), missed(figures.missed_mdn))
                    },
                )
            };
            let cells = [format!("{} beside {beside}", program.name())].into_iter();
            table.cells(cells.chain(schedulers.iter().copied().map(cell)).collect());
        }
    }
    table
}
