//! Missed deadlines and CPU time with and without MDN: both tables of the paper, and the same for the other
//! schedulers.

use onbeat_model::Span;
use onbeat_sim::workload::Notifies;
use serde::Serialize;
use serde_json::json;

use super::guest::{self, Guested, Run};
use super::paper::{Line, MIXES, Mix, TABLES};
use super::simulated::{Setting, run as simulate, workload};
use super::{Outcome, Scheduler, VARIATION};
use crate::machine::Machine;
use crate::results::{Ran, Table, publish};

const NAME: &str = "mdn-deadlines";

/// What it is run with.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Runs, each with other films
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: u64,
    /// For how long a run lasts, in virtual time
    #[arg(long, value_name = "SECONDS", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seconds: u64,
    /// How different the frames are, in permille of srtgen's default
    #[arg(long, value_name = "PERMILLE", default_value_t = VARIATION,
          value_parser = clap::value_parser!(u32).range(0..=3000))]
    variation: u32,
    /// The programs' timers fire at multiples of so many ms alone, as on the paper's machines with 10; 0: exactly
    #[arg(long, value_name = "MS", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(0..=100))]
    timer_ms: u64,
    /// Run each once on a kernel in a virtual machine instead, for so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1000))]
    guest: Option<u64>,
}

/// One program of a mix under one scheduler, in percent, in the mean of all runs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Figures {
    missed: f64,
    missed_mdn: f64,
    cpu: f64,
    cpu_mdn: f64,
}

#[derive(Debug, Serialize)]
struct Result {
    scheduler: Scheduler,
    mix: &'static str,
    program: String,
    #[serde(flatten)]
    figures: Figures,
}

/// Runs every mix under every scheduler, and publishes the paper's tables and the comparison.
pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    let guested = match args.guest {
        Some(seconds) => Some(Guests::boot(machine, args.variation, seconds)?),
        None => None,
    };
    let mut results = Vec::new();
    for scheduler in Scheduler::ALL {
        for mix in MIXES {
            machine.go_on()?;
            let figures = match &guested {
                Some(guests) => guests.figures(scheduler, mix)?,
                None => figures(scheduler, mix, args),
            };
            for (program, figures) in mix.programs.iter().zip(figures) {
                results.push(Result {
                    scheduler,
                    mix: mix.name,
                    program: program.name(),
                    figures,
                });
            }
        }
    }
    let (ran, suffix) = match &guested {
        Some(guests) => (guests.guested.ran(), "-guest"),
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
    publish(
        machine.out(),
        &ran,
        &format!("{NAME}{suffix}"),
        &the_papers(&results),
        &results,
        paper.clone(),
    )?;
    publish(
        machine.out(),
        &ran,
        &format!("mdn-schedulers{suffix}"),
        &all(&results),
        &results,
        paper,
    )
}

/// Where the figures come from that no kernel gave.
fn simulated(args: &Args) -> Ran {
    Ran::Computed(format!(
        "the simulated machine: {} runs of {} s for each figure, srtgen's frames with variation {}, timers that fire {}",
        args.runs,
        args.seconds,
        args.variation,
        match args.timer_ms {
            0 => "exactly".to_owned(),
            ms => format!("every {ms} ms"),
        }
    ))
}

/// All mixes under all schedulers, on a kernel.
struct Guests {
    guested: Guested,
    setting: Setting,
    seconds: u64,
}

impl Guests {
    fn boot(machine: &Machine, variation: u32, seconds: u64) -> anyhow::Result<Self> {
        let setting = Setting {
            variation,
            ..Setting::of_seed(1)
        };
        let each = Scheduler::ALL.into_iter().flat_map(|scheduler| {
            MIXES.into_iter().flat_map(move |mix| {
                // The kernel's own does not listen.
                let ways = if listens(scheduler) {
                    &[false, true][..]
                } else {
                    &[false]
                };
                ways.iter()
                    .map(move |&mdn| Run::of_mix(scheduler, mix, setting, mdn))
            })
        });
        let runs: Vec<Run> = each.collect();
        Ok(Self {
            guested: guest::boot(machine, &runs, seconds)?,
            setting,
            seconds,
        })
    }

    fn figures(&self, scheduler: Scheduler, mix: Mix) -> anyhow::Result<Vec<Figures>> {
        let outcomes = |mdn| {
            let run = Run::of_mix(scheduler, mix, self.setting, mdn && listens(scheduler));
            self.guested.outcomes(&run)
        };
        let (without, with) = (outcomes(false)?, outcomes(true)?);
        let seconds = self.seconds as usize;
        let each = without.iter().zip(&with).map(|(without, with)| Figures {
            missed: without.missed_percent(),
            missed_mdn: with.missed_percent(),
            cpu: without.cpu_percent(0, seconds),
            cpu_mdn: with.cpu_percent(0, seconds),
        });
        Ok(each.collect())
    }
}

const fn listens(scheduler: Scheduler) -> bool {
    !matches!(scheduler, Scheduler::Eevdf | Scheduler::EevdfShort)
}

fn figures(scheduler: Scheduler, mix: Mix, args: &Args) -> Vec<Figures> {
    let mut sums = vec![Figures::default(); mix.programs.len()];
    for seed in 1..=args.runs {
        let setting = Setting {
            seed,
            variation: args.variation,
            timer: Span::from_ms(args.timer_ms),
        };
        let without = once(scheduler, mix, setting, Notifies::Never, args.seconds);
        let with = once(scheduler, mix, setting, Notifies::WhenLate, args.seconds);
        for ((sum, without), with) in sums.iter_mut().zip(&without).zip(&with) {
            let mean = |figure: f64| figure / args.runs as f64;
            sum.missed += mean(without.missed_percent());
            sum.missed_mdn += mean(with.missed_percent());
            sum.cpu += mean(without.cpu_percent(0, args.seconds as usize));
            sum.cpu_mdn += mean(with.cpu_percent(0, args.seconds as usize));
        }
    }
    sums
}

/// One run of a mix.
pub(super) fn once(
    scheduler: Scheduler,
    mix: Mix,
    setting: Setting,
    notifies: Notifies,
    seconds: u64,
) -> Vec<Outcome> {
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

/// Few missed deadlines tell more in hundredths.
fn missed(figure: f64) -> String {
    if figure < 1.0 {
        format!("{figure:.2}%")
    } else {
        percent(figure)
    }
}

/// The paper's tables, its figures beside ours.
fn the_papers(results: &[Result]) -> Table {
    let mut table = Table::new([
        "processes",
        "missed",
        "paper",
        "missed, MDN",
        "paper",
        "CPU",
        "paper",
        "CPU, MDN",
        "paper",
    ]);
    for (scheduler, mix, lines) in TABLES {
        for (result, line) in of(results, scheduler, mix).zip(lines) {
            let Line { missed: paper, cpu } = *line;
            let if_late = |text: String| paper.map_or_else(|| "-".to_owned(), |_| text);
            let Figures {
                missed: without,
                missed_mdn,
                cpu: got,
                cpu_mdn,
            } = result.figures;
            table.row([
                format!("{}: {}", scheduler.name(), result.program),
                if_late(missed(without)),
                if_late(format!("{}%", paper.map_or("", |paper| paper.0))),
                if_late(missed(missed_mdn)),
                if_late(format!("{}%", paper.map_or("", |paper| paper.1))),
                percent(got),
                percent(cpu.0),
                percent(cpu_mdn),
                percent(cpu.1),
            ]);
        }
    }
    table
}

/// Missed deadlines of each soft real-time program under each scheduler, without and with MDN.
fn all(results: &[Result]) -> Table {
    let [a, b, c, d, e, f] = Scheduler::ALL.map(Scheduler::name);
    let mut table = Table::new(["missed, without and with MDN", a, b, c, d, e, f]);
    for mix in MIXES {
        for (place, program) in mix.programs.iter().enumerate() {
            if !program.is_srt() {
                continue;
            }
            let beside = mix.programs.len() - 1;
            let cell = |scheduler| {
                let result = of(results, scheduler, mix).nth(place);
                let figures = result.map(|result| result.figures).unwrap_or_default();
                format!("{} {}", missed(figures.missed), missed(figures.missed_mdn))
            };
            let [a, b, c, d, e, f] = Scheduler::ALL.map(cell);
            table.row([
                format!("{} beside {beside}", program.name()),
                a,
                b,
                c,
                d,
                e,
                f,
            ]);
        }
    }
    table
}
