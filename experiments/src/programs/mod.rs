//! Real programs, unmodified, on an idle machine and on busy ones, started in each way that a
//! person could choose: the suite that decides what onbeat is worth.
//!
//! A [`TestedProgram`] says how it is started and what it did, a [`Situation`] what else runs, a
//! [`ProgramWay`] by what means the program is started. A cell is one run of a program in a
//! situation by a way.

mod browser;
mod cell;
mod damage;
mod done;
mod program;
mod situation;
mod tables;
mod way;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::machine::Machine;
use crate::media::Clip;
use crate::readme;
use crate::results::Ran;

use cell::CellSetup;
use done::Done;
use program::TestedProgram;
use situation::Situation;
use way::ProgramWay;

/// A cell's time beside that of its program: starting, ending, settling.
const BESIDE: Duration = Duration::from_millis(2500);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which programs, separated by commas; without this, all
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    programs: Vec<TestedProgram>,
    /// Other programs that run, separated by commas; without this, all
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    situations: Vec<Situation>,
    /// Ways beside onbeat, separated by commas; without this, all. `nothing` is always there
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    ways: Vec<way::Plain>,
    /// A further variant of onbeat, as in soft= or hard=--hard or before@PATH=--reclaim; without
    /// this, onbeat alone
    #[arg(long = "onbeat", value_name = "NAME[@BINARY]=OPTIONS", value_parser = way::variant)]
    variants: Vec<way::Variant>,
    /// How often each cell is run; the tables have medians
    #[arg(long, value_name = "COUNT", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// For how long a program runs in each cell
    #[arg(long, value_name = "SECONDS", default_value_t = 18,
          value_parser = clap::value_parser!(u64).range(4..=600))]
    seconds: u64,
    /// How many CPU hogs there are for each CPU
    #[arg(long, value_name = "COUNT", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=64))]
    hogs: u32,
    /// Two minutes: four programs once, for 5 s, idle and beside hogs, by nothing, chrt and onbeat
    #[arg(long, conflicts_with_all = ["programs", "situations", "ways", "runs", "seconds"])]
    quick: bool,
    /// Keep the cells that an earlier run left in the folder of the figures, and measure the others
    #[arg(long)]
    resume: bool,
    /// Put the tables into this README, between its markers
    #[arg(long, value_name = "FILE")]
    write_readme: Option<PathBuf>,
}

/// One run, as it is kept.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct KeptRun {
    program: TestedProgram,
    situation: Situation,
    way: String,
    run: u32,
    /// The results, or why it could not be run.
    #[serde(flatten)]
    outcome: CellOutcome,
}

/// The end of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum CellOutcome {
    Done(Done),
    /// Why it could not be run.
    Failed(String),
}

/// The cells to measure.
struct CellPlan {
    programs: Vec<TestedProgram>,
    situations: Vec<Situation>,
    ways: Vec<ProgramWay>,
    runs: u32,
    time: Duration,
}

impl CellPlan {
    fn of(args: &Args) -> Self {
        if args.quick {
            return Self {
                programs: vec![
                    TestedProgram::Mpv,
                    TestedProgram::Gst,
                    TestedProgram::Loop,
                    TestedProgram::Transcode,
                ],
                situations: vec![Situation::Idle, Situation::Hogs],
                ways: way::all(&[way::Plain::Chrt], &args.variants),
                runs: 1,
                time: Duration::from_secs(5),
            };
        }
        Self {
            programs: chosen_or_all(&args.programs),
            situations: chosen_or_all(&args.situations),
            ways: way::all(&chosen_or_all(&args.ways), &args.variants),
            runs: args.runs,
            time: Duration::from_secs(args.seconds),
        }
    }

    /// Every cell of one round, the ways of a program one after the other, each round in another
    /// order.
    fn round(&self, run: u32) -> Vec<(Situation, TestedProgram, &ProgramWay)> {
        let mut cells = Vec::new();
        for &situation in &self.situations {
            for &program in &self.programs {
                let turn = run as usize % self.ways.len().max(1);
                let (later, first) = self.ways.split_at(turn);
                let ways = first.iter().chain(later);
                cells.extend(
                    ways.filter(|way| way.suits(program, situation))
                        .map(|way| (situation, program, way)),
                );
            }
        }
        cells
    }
}

/// Runs it.
fn chosen_or_all<T: ValueEnum>(chosen: &[T]) -> Vec<T> {
    match chosen {
        [] => T::value_variants().to_vec(),
        _ => chosen.to_vec(),
    }
}

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    machine.need_root()?;
    let plan = CellPlan::of(args);
    let facts = machine.facts();
    let path = machine.file("programs.jsonl");
    let mut kept = if args.resume {
        read(&path)?
    } else {
        Vec::new()
    };
    if !args.resume {
        fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))?;
    }
    let film = Clip::of(machine, plan.time.as_secs().max(20) + 10)?;
    let mut bed = CellSetup::new(
        machine,
        &film,
        args.hogs * Machine::cpus() as u32,
        plan.time,
    )?;
    let rounds: Vec<_> = (0..plan.runs)
        .flat_map(|run| plan.round(run).into_iter().map(move |cell| (run, cell)))
        .filter(|(run, (situation, program, way))| {
            !kept.iter().any(|kept| {
                (kept.run, kept.situation, kept.program) == (*run, *situation, *program)
                    && kept.way == way.name()
            })
        })
        .collect();
    let cells = rounds.len();
    let minutes = (plan.time + BESIDE).as_secs_f64() * cells as f64 / 60.0;
    println!("{cells} cells, about {minutes:.0} minutes");
    let began = Instant::now();
    for (n, (run, (situation, program, way))) in rounds.into_iter().enumerate() {
        let outcome = match bed.run(program, situation, way) {
            Ok(done) => CellOutcome::Done(done),
            Err(error) if crate::machine::was_interrupted(&error) => return Err(error),
            Err(error) => CellOutcome::Failed(format!("{error:#}")),
        };
        let told = match &outcome {
            CellOutcome::Done(done) => done.to_string(),
            CellOutcome::Failed(why) => format!("not run: {why}"),
        };
        let left = began.elapsed().as_secs_f64() / (n + 1) as f64 * (cells - n - 1) as f64 / 60.0;
        println!(
            "[{}/{cells}, {left:.0} min left] {}, {}, {}: {told}",
            n + 1,
            situation.name(),
            program.name(),
            way.name(),
        );
        let cell = KeptRun {
            program,
            situation,
            way: way.name().to_owned(),
            run,
            outcome,
        };
        let mut file = OpenOptions::new().append(true).open(&path)?;
        writeln!(file, "{}", serde_json::to_string(&cell)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        kept.push(cell);
    }
    publish(machine, args, &plan, facts, &kept)
}

fn read(path: &std::path::Path) -> anyhow::Result<Vec<KeptRun>> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            serde_json::from_str(line).with_context(|| format!("{} is damaged", path.display()))
        })
        .collect()
}

fn publish(
    machine: &Machine,
    args: &Args,
    plan: &CellPlan,
    facts: crate::machine::MachineFacts,
    kept: &[KeptRun],
) -> anyhow::Result<()> {
    let from = format!(
        "Of each cell {} of {} s, {} hogs on {} CPUs, load before {}. {}",
        match plan.runs {
            1 => "one run".to_owned(),
            runs => format!("{runs} runs"),
        },
        plan.time.as_secs(),
        args.hogs as usize * Machine::cpus(),
        Machine::cpus(),
        facts.load_before(),
        readme::taken(&facts),
    );
    let ways: Vec<&str> = plan.ways.iter().map(ProgramWay::name).collect();
    let mut all = Vec::new();
    for &situation in &plan.situations {
        let text = tables::of(kept, situation, &plan.programs, &ways);
        println!("\n{}\n\n{text}", situation.title());
        all.push((situation.name(), format!("{from}\n\n{text}")));
        tables::draw(machine.out(), kept, situation, &plan.programs, &ways)?;
    }
    let figures = json!({
        "experiment": "programs",
        "ran": Ran::Live(facts),
        "from": from,
        "ours": kept,
        "tables": all,
    });
    let path = machine.file("programs.json");
    fs::write(&path, serde_json::to_string_pretty(&figures)? + "\n")
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("figures: {}", path.display());
    if let Some(file) = &args.write_readme {
        let mut text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        for (situation, table) in &all {
            let marker = format!("table: {situation}");
            text = readme::with_block(&text, &marker, &format!("{}\n", table.trim_end()))
                .with_context(|| format!("in {}", file.display()))?;
        }
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if kept.is_empty() {
        bail!("nothing was measured");
    }
    Ok(())
}
