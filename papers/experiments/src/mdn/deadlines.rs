//! Missed deadlines and CPU time with and without MDN: both tables of the paper, and the same for
//! the other schedulers.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use super::paper::{Line, MIXES, Mix, TABLES};
use super::run::{Bed, Run};
use super::{Outcome, Scheduler};
use crate::machine::Machine;
use crate::results::{Table, or_dash};
use crate::spread::Spread;

const NAME: &str = "mdn-deadlines";

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Runs of each, with other films [default: 50, or 1 with --guest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: Option<u64>,
    /// Only under these schedulers
    #[arg(long, value_enum, value_name = "SCHEDULER", value_delimiter = ',')]
    only: Vec<Scheduler>,
    /// For how long a run lasts, in virtual time
    #[arg(long, value_name = "SECONDS", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seconds: u64,
    /// Run each for SECONDS on a kernel in a virtual machine instead
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1000))]
    guest: Option<u64>,
}

impl Args {
    fn runs(&self) -> u64 {
        self.runs
            .unwrap_or(if self.guest.is_some() { 1 } else { 50 })
    }

    fn schedulers(&self) -> Vec<Scheduler> {
        let variants = Scheduler::VARIANTS.into_iter();
        let variants = variants.filter(|_| self.guest.is_none());
        let all = Scheduler::ALL.into_iter().chain(variants);
        all.filter(|scheduler| self.only.is_empty() || self.only.contains(scheduler))
            .collect()
    }

    /// Each film without notifications, and with them.
    fn runs_of(&self, scheduler: Scheduler, mix: Mix) -> Vec<Run> {
        let ways = |seed| [false, true].map(|mdn| Run::of_mix(scheduler, mix, seed, mdn));
        (1..=self.runs()).flat_map(ways).collect()
    }
}

/// One program of a mix under one scheduler, in percent, over all runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Figures {
    missed: Spread,
    missed_mdn: Spread,
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

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    let cases: Vec<(Scheduler, Mix)> = args
        .schedulers()
        .into_iter()
        .flat_map(|scheduler| MIXES.map(|mix| (scheduler, mix)))
        .collect();
    let bed = match args.guest {
        Some(seconds) => {
            let runs = cases.iter().flat_map(|&(of, mix)| args.runs_of(of, mix));
            Bed::booted(machine, &runs.collect::<Vec<Run>>(), seconds)?
        }
        None => Bed::simulated(args.seconds),
    };
    let mut results = Vec::new();
    for (scheduler, mix) in cases {
        machine.go_on()?;
        let outcomes = bed.outcomes(&args.runs_of(scheduler, mix))?;
        for (place, program) in mix.programs.iter().enumerate() {
            results.push(Result {
                scheduler,
                mix: mix.name,
                program: program.name(),
                figures: figures(&outcomes, place, bed.seconds as usize),
            });
        }
    }
    let ran = bed.ran(&format!(
        "{} runs of {} s for each figure",
        args.runs(),
        args.seconds
    ));
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
    let publish = |name: String, table: Table, results: &[Result]| {
        machine.publish(&ran, &name, &table, &results, paper.clone())
    };
    publish(
        format!("{NAME}{}", bed.suffix()),
        the_papers(&results),
        &results,
    )?;
    if args.guest.is_none() {
        return publish("mdn-schedulers".to_owned(), all(&results), &results);
    }
    // A table each, so that one may be taken again without the others.
    for results in results.chunk_by(|a, b| a.scheduler == b.scheduler) {
        let scheduler = results
            .iter()
            .find_map(|of| of.scheduler.to_possible_value());
        let scheduler = scheduler.map_or_else(String::new, |value| value.get_name().to_owned());
        publish(
            format!("mdn-schedulers-guest-{scheduler}"),
            all(results),
            results,
        )?;
    }
    Ok(())
}

/// Of a program in runs without MDN and with it by turns.
fn figures(outcomes: &[Vec<Outcome>], place: usize, seconds: usize) -> Figures {
    let spread = |mdn: usize, figure: &dyn Fn(&Outcome) -> f64| {
        let runs = outcomes.iter().skip(mdn).step_by(2);
        let figures = runs.filter_map(|of_run| of_run.get(place)).map(figure);
        Spread::of(&figures.collect::<Vec<_>>())
    };
    let cpu = |outcome: &Outcome| outcome.cpu_percent(0, seconds);
    Figures {
        missed: spread(0, &Outcome::missed_percent),
        missed_mdn: spread(1, &Outcome::missed_percent),
        cpu: spread(0, &cpu),
        cpu_mdn: spread(1, &cpu),
    }
}

fn of(results: &[Result], scheduler: Scheduler, mix: Mix) -> impl Iterator<Item = &Result> {
    let of_this = move |result: &&Result| result.scheduler == scheduler && result.mix == mix.name;
    results.iter().filter(of_this)
}

fn percent(figure: f64) -> String {
    format!("{figure:.1}%")
}

fn missed(Spread { mean, deviation }: Spread) -> String {
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
