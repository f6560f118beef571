//! GRACE-OS: the paper's section 4 on the simulated machine, with the measured demands of real
//! codecs, and what is beyond it.

mod case;
mod codecs;
mod cost;
mod schemes;
mod sweeps;

use serde::Serialize;
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::results::{Ran, Table, publish};
use codecs::Codec;

const NAME: &str = "grace-os";

/// What it is run with.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// New budgets after so many jobs; 0: those of the first 100 jobs stay, as in the paper
    #[arg(long, value_name = "JOBS", default_value_t = 10)]
    update_every: usize,
    /// Play this half of each recording, not all: constants of schemes are to be chosen on the
    /// first
    #[arg(long, value_enum)]
    half: Option<Half>,
}

/// A part of each recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Half {
    First,
    Second,
}

impl Args {
    const fn update_every(&self) -> Option<usize> {
        if self.update_every == 0 {
            None
        } else {
            Some(self.update_every)
        }
    }
}

#[derive(Serialize)]
struct Figures<'a> {
    codecs: Vec<Value>,
    runs: &'a [schemes::Run<'a>],
    rho: &'a [sweeps::Point],
    best_effort: &'a [sweeps::Point],
    power: &'a [sweeps::Static],
    estimation: &'a [cost::Estimation],
    scheduling: &'a [cost::Scheduling],
}

/// Runs all, and publishes tables, JSON and plots.
pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    let codecs = Codec::all(args.half)?;
    let mut table = Table::new([
        "codec",
        "period",
        "jobs",
        "stretched by",
        "mean",
        "95%",
        "worst",
    ]);
    for codec in &codecs {
        table.row(codec.row());
    }
    println!("\n{}", table.to_markdown());
    let concurrent: Vec<&Codec> = codecs.iter().filter(|codec| codec.name != "tmn").collect();
    let mut sets: Vec<(&str, Vec<&Codec>)> = codecs
        .iter()
        .map(|codec| (codec.name, vec![codec]))
        .collect();
    sets.push(("concurrent", concurrent.clone()));
    let runs = schemes::all(&sets, args.update_every());
    schemes::print_speeds(&runs);
    schemes::print_as_played(&runs);
    let names: Vec<&str> = sets.iter().map(|(name, _)| *name).collect();
    schemes::draw(machine.out(), &names, &runs)?;
    let mpgplay: Vec<&Codec> = codecs
        .iter()
        .filter(|codec| codec.name == "mpgplay")
        .collect();
    let sweeps = [("mpgplay", mpgplay), ("concurrent", concurrent.clone())];
    let rho = sweeps::rho(&sweeps, args.update_every());
    let best_effort = sweeps::best_effort(&sweeps, args.update_every());
    let power = sweeps::fixed_power(&concurrent, args.update_every());
    let (estimation, scheduling) = (cost::estimation(&codecs), cost::scheduling(&codecs));
    sweeps::draw(machine.out(), &rho, &best_effort, &power)?;
    cost::draw(machine.out(), &estimation, &scheduling)?;
    let figures = Figures {
        codecs: codecs.iter().map(Codec::told).collect(),
        runs: &runs,
        rho: &rho,
        best_effort: &best_effort,
        power: &power,
        estimation: &estimation,
        scheduling: &scheduling,
    };
    let what = "recorded demands on the simulated machine; Fig. 8 and 9 are timed on this machine";
    let ran = Ran::Computed(what.to_owned());
    publish(
        machine.out(),
        &ran,
        NAME,
        &schemes::table(&runs),
        &figures,
        paper(),
    )
}

/// The paper's figures, as far as its text has them.
fn paper() -> Value {
    json!({
        "table_5_changes_per_job": { "mpgplay": 2.14, "madplay": 0.0, "tmn": 1.28, "tmndec": 0.94, "toast": 0.0, "concurrent": 0.8 },
        "table_7_mpgplay": { "missed": "0.3% to 0.6% under all", "energy_saved_by_grace_os": [0.534, 0.716], "grace_os_busy_at_300_mhz": 0.923, "grace_os_idle": 0.291 },
        "table_8_toast_madplay_idle": [0.973, 0.91],
        "table_10_concurrent": {
            "energy": { "wrsUni": 56.7, "wrsRec": 32.5, "wrsSto": 21.9, "stoUni": 42.1, "stoRec": 30.1, "GRACE-OS": 20.5 },
            "missed": { "wrsUni": 0.003, "wrsRec": 0.005, "wrsSto": 0.004, "stoUni": 0.048, "stoRec": 0.052, "GRACE-OS": 0.049 },
        },
        "table_9_busy_at_300_mhz": { "GRACE-OS": 0.838, "wrsSto": 0.644 },
        "fig_8_estimation_cycles": "100,000 to 300,000 (0.25 to 0.8 ms)",
        "fig_9_scheduling_cycles": "80 to 800 for up to 10 tasks",
        "saved": [0.07, 0.72],
    })
}
