//! Missed deadlines and CPU time with and without MDN: both tables of the paper, and the same for
//! the other schedulers.

use super::paper::{Line, MIXES, Mix, Program, TABLES};
use super::run::{Bed, Run};
use super::{Outcome, Scheduler};
use crate::machine::Machine;
use crate::results::{Ran, Table, or_dash};
use crate::statistics::Spread;

const NAME: &str = "mdn-deadlines";

/// Runs of each, with other films, and how long each lasts.
const RUNS: u64 = 50;
const SECONDS: u64 = 100;
/// On a kernel: films, and seconds of each.
const ON_A_KERNEL: [(Scheduler, u64, u64); 4] = [
    (Scheduler::Linux24, 1, 20),
    (Scheduler::Best, 1, 20),
    (Scheduler::Berate, 1, 20),
    (Scheduler::Onbeat, 10, 5),
];

/// Each film without notifications, and with them.
fn runs_of(runs: u64, scheduler: Scheduler, mix: Mix) -> Vec<Run> {
    let ways = |seed| [false, true].map(|mdn| Run::of_mix(scheduler, mix, seed, mdn));
    (1..=runs).flat_map(ways).collect()
}

/// One program of a mix under one scheduler, in percent, over all runs.
struct Figures {
    missed: Spread,
    missed_mdn: Spread,
    cpu: Spread,
    cpu_mdn: Spread,
}

struct Result {
    scheduler: Scheduler,
    mix: &'static str,
    program: String,
    figures: Figures,
}

/// Both tables of the paper, and all schedulers, on the simulated machine.
pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let bed = Bed::simulated(SECONDS);
    let mut results = Vec::new();
    for scheduler in Scheduler::ALL.into_iter().chain(Scheduler::VARIANTS) {
        for mix in MIXES {
            machine.go_on()?;
            results.extend(results_of(&bed, RUNS, scheduler, mix)?);
        }
    }
    let told = format!("{RUNS} runs of {SECONDS} s for each figure");
    let ran = bed.ran(machine, &told);
    machine.publish(&ran, NAME, &the_papers(&results));
    machine.publish(&ran, "mdn-schedulers", &all(&results));
    Ok(())
}

/// On a kernel in a virtual machine.
pub(crate) fn run_on_a_kernel(machine: &Machine) -> anyhow::Result<()> {
    let (mut results, mut ran) = (Vec::new(), Ran::live(machine));
    for (scheduler, films, seconds) in ON_A_KERNEL {
        let runs = MIXES.map(|mix| runs_of(films, scheduler, mix)).concat();
        let bed = Bed::booted(machine, &runs, seconds)?;
        for mix in MIXES {
            results.extend(results_of(&bed, films, scheduler, mix)?);
        }
        ran = bed.ran(machine, "");
    }
    machine.publish(&ran, "mdn-schedulers-guest", &all(&results));
    Ok(())
}

fn results_of(bed: &Bed, runs: u64, scheduler: Scheduler, mix: Mix) -> anyhow::Result<Vec<Result>> {
    let outcomes = bed.outcomes(&runs_of(runs, scheduler, mix))?;
    let programs = mix.programs.iter().enumerate();
    let result = |(place, program): (usize, &Program)| Result {
        scheduler,
        mix: mix.name,
        program: program.name(),
        figures: figures(&outcomes, place, bed.seconds as usize),
    };
    Ok(programs.map(result).collect())
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
    // The CPU-bound programs have what the others leave.
    let judged = rows.filter(|(_, line)| line.missed.is_some());
    Table::of(judged, |(result, Line { missed: paper, cpu })| {
        let got = &result.figures;
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
