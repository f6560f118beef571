//! `onbeat-lab sim`: simulated machines, as tables or as JSON lines.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use onbeat_model::{Quantiles, Span};
use onbeat_sim::scenario::figures::{GroupFigures, ScenarioFigures};
use onbeat_sim::scenario::{self, Outputs, Scenario, ScenarioRun};
use rayon::prelude::*;
use serde::Serialize;

use crate::cli::SimArgs;
use crate::compare;
use crate::progress::ProgressLine;
use onbeat_command::output::create;
use onbeat_command::table::TextTable;
use onbeat_top::Align;

/// One line of `sim --json`; `docs/formats.md` describes it.
#[derive(Serialize)]
struct SimLine<'a> {
    file: String,
    #[serde(flatten)]
    figures: &'a ScenarioFigures,
}

struct SimRun<'a> {
    file: &'a Path,
    scenario: &'a Scenario,
    seed: u64,
}

pub(crate) fn run(args: &SimArgs) -> anyhow::Result<ExitCode> {
    if !args.comparison.from.is_empty() {
        return compare::run(args);
    }
    let scenarios = args
        .files
        .iter()
        .map(|file| Ok((file.as_path(), scenario::read(file)?)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let planned: Vec<SimRun> = scenarios
        .iter()
        .flat_map(|(file, scenario)| {
            let own = (scenario.seed, scenario.seed);
            let (first, last) = args.seed.map_or(own, |seeds| (seeds.first, seeds.last));
            (first..=last).map(|seed| SimRun {
                file,
                scenario,
                seed,
            })
        })
        .collect();
    if planned.len() > 1 && (args.jobs.is_some() || args.timeline.is_some()) {
        anyhow::bail!(
            "--jobs and --timeline take one run, not {}: give one file and one seed",
            planned.len()
        );
    }
    let progress = ProgressLine::new(
        planned.iter().map(|p| p.scenario.duration).sum(),
        args.quiet,
    );
    let results = planned
        .par_iter()
        .map(|planned| {
            let run = ScenarioRun::new(planned.scenario).seeded(planned.seed);
            simulate(&run, args, &progress)
        })
        .collect::<anyhow::Result<Vec<ScenarioFigures>>>();
    progress.end();
    print(&planned, &results?, args)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs to the end, and writes the files that the flags name.
pub(crate) fn simulate(
    run: &ScenarioRun,
    args: &SimArgs,
    progress: &ProgressLine,
) -> anyhow::Result<ScenarioFigures> {
    let open = |path: &Path| -> anyhow::Result<Box<dyn Write>> { Ok(Box::new(create(path)?)) };
    let outputs = Outputs {
        jobs: args.jobs.as_deref().map(open).transpose()?,
        timeline: args.timeline.as_deref().map(open).transpose()?,
    };
    let mut before = Span::ZERO;
    let figures = run.run(outputs, |over| {
        progress.advance(over - before);
        before = over;
    });
    figures.context("cannot write the jobs or the timeline")
}

fn print(planned: &[SimRun], results: &[ScenarioFigures], args: &SimArgs) -> anyhow::Result<()> {
    let mut output = BufWriter::new(io::stdout().lock());
    for (number, (planned, figures)) in planned.iter().zip(results).enumerate() {
        let file = planned.file.display().to_string();
        if args.json {
            let line = SimLine { file, figures };
            writeln!(output, "{}", serde_json::to_string(&line)?)?;
            continue;
        }
        if results.len() > 1 {
            let gap = if number > 0 { "\n" } else { "" };
            writeln!(output, "{gap}{file}, seed {}:", figures.seed)?;
        }
        write!(output, "{}\n{}", tasks(figures), machine(figures))?;
    }
    output.flush()?;
    Ok(())
}

fn tasks(figures: &ScenarioFigures) -> TextTable {
    let mut table = TextTable::new(&[
        ("task", Align::Left),
        ("tasks", Align::Right),
        ("jobs", Align::Right),
        ("missed", Align::Right),
        ("of jobs", Align::Right),
        ("median", Align::Right),
        ("p99", Align::Right),
        ("longest", Align::Right),
        ("CPU", Align::Right),
        ("budget ran out", Align::Right),
    ]);
    for group in &figures.tasks {
        let times = group.response_time;
        let time = |of: fn(&Quantiles) -> Span| {
            times
                .as_ref()
                .map_or_else(|| "-".to_owned(), |times| of(times).to_string())
        };
        table.row([
            group.name.clone(),
            group.count.to_string(),
            group.jobs.to_string(),
            group.missed.to_string(),
            share_missed(group),
            time(|times| times.p50_ns),
            time(|times| times.p99_ns),
            time(|times| times.max_ns),
            percent(group.executed_ns.ratio(figures.duration_ns)),
            group.exhaustions.to_string(),
        ]);
    }
    table
}

fn share_missed(group: &GroupFigures) -> String {
    if group.jobs == 0 {
        return "-".to_owned();
    }
    percent(group.missed as f64 / group.jobs as f64)
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

fn machine(figures: &ScenarioFigures) -> String {
    let cpus = figures.cpus.len();
    let busy: f64 = figures.cpus.iter().map(|cpu| cpu.busy).sum::<f64>() / cpus.max(1) as f64;
    let changes: u64 = figures.cpus.iter().map(|cpu| cpu.speed_changes).sum();
    let mut text = format!(
        "{} on {cpus} CPU{}, {} busy, {} switches, energy of {} at full power\n",
        figures.duration_ns,
        if cpus == 1 { "" } else { "s" },
        percent(busy),
        figures.switches,
        Span::from_secs_f64(figures.energy),
    );
    if changes > 0 {
        text += &format!("{changes} changes of speed\n");
    }
    if let Some(changes) = figures.changes {
        text += &format!("{changes} decisions by onbeat\n");
    }
    text
}
