//! GRACE-OS: the paper's section 4 on the simulated machine, with the measured demands of real
//! codecs, and what is beyond it.

mod case;
mod codecs;
mod cost;
mod schemes;
mod sweeps;
mod tables;

use serde_json::{Value, json};

use crate::machine::Machine;
use crate::results::{Ran, Table};
use codecs::Codec;

const NAME: &str = "grace-os";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only time estimation and scheduling on this machine (Fig. 8 and 9)
    #[arg(long)]
    costs: bool,
}

/// A part of each recording: constants of schemes are chosen on the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

/// Codecs that run together, and the name of that.
type Set<'a> = (&'static str, Vec<&'a Codec>);

const TOGETHER: &str = "concurrent";
const HALVES: [&str; 2] = ["concurrent, first halves", "concurrent, second halves"];

fn together(codecs: &[Codec]) -> Vec<&Codec> {
    codecs.iter().filter(|codec| codec.name != "tmn").collect()
}

fn sets(codecs: &[Codec]) -> Vec<Set<'_>> {
    let alone = codecs.iter().map(|codec| (codec.name, vec![codec]));
    alone.chain([(TOGETHER, together(codecs))]).collect()
}

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    let codecs = Codec::all(None)?;
    if args.costs {
        return time_costs(machine, &codecs);
    }
    let halves = [
        Codec::all(Some(Half::First))?,
        Codec::all(Some(Half::Second))?,
    ];
    let mut played = sets(&codecs);
    let names: Vec<&str> = played.iter().map(|(name, _)| *name).collect();
    let of_halves = HALVES.into_iter().zip(&halves);
    played.extend(of_halves.map(|(name, codecs)| (name, together(codecs))));
    let runs = schemes::all(&played);
    schemes::draw(machine.out(), &names, &runs)?;
    publish_runs(machine, &codecs, &names, &runs)?;

    let swept: Vec<Set> = sets(&codecs)
        .into_iter()
        .filter(|(name, _)| ["mpgplay", TOGETHER].contains(name))
        .collect();
    let (rho, best_effort) = (sweeps::rho(&swept), sweeps::best_effort(&swept));
    sweeps::draw(machine.out(), &rho, &best_effort)?;
    let publish = |name: &str, table: &Table, ours: Value| more(machine, name, table, &ours);
    publish("rho", &tables::sweep(&rho, "rho"), json!(rho))?;
    let kept = tables::sweep(&best_effort, "kept for best effort, MHz");
    publish("best-effort", &kept, json!(best_effort))
}

/// A table of its own beside that of the concurrent run.
fn more(machine: &Machine, name: &str, table: &Table, ours: &Value) -> anyhow::Result<()> {
    let name = format!("{NAME}-{name}");
    machine.publish(&computed(), &name, table, ours, json!({}))
}

fn computed() -> Ran {
    Ran::Computed("recorded demands on the simulated machine".to_owned())
}

/// Tables 5 to 10 and Fig. 12.
fn publish_runs(
    machine: &Machine,
    codecs: &[Codec],
    sets: &[&str],
    runs: &[schemes::SchemeRun],
) -> anyhow::Result<()> {
    let figures: Vec<tables::Figures> = runs.iter().map(tables::Figures::of).collect();
    let table = tables::energy(runs, TOGETHER);
    machine.publish(&computed(), NAME, &table, &figures, paper())?;
    let publish = |name: &str, table: &Table| {
        more(machine, name, table, &json!({ "runs": "in grace-os.json" }))
    };
    publish("mpgplay", &tables::energy(runs, "mpgplay"))?;
    publish("halves", &tables::halves(runs))?;
    let alone: Vec<&str> = codecs.iter().map(|codec| codec.name).collect();
    publish("alone", &tables::alone(runs, &alone))?;
    publish("changes", &tables::changes(runs, sets))?;
    for set in ["mpgplay", "tmn", "tmndec", TOGETHER] {
        publish(&format!("speeds-{set}"), &tables::speeds(runs, set))?;
    }
    let played = tables::as_played(runs);
    let table = tables::as_played_table(&played);
    more(machine, "as-played", &table, &json!(played))?;

    let table = Table::of(codecs, Codec::row);
    let told: Vec<Value> = codecs.iter().map(Codec::told).collect();
    more(machine, "codecs", &table, &json!(told))
}

/// Fig. 8 and 9.
fn time_costs(machine: &Machine, codecs: &[Codec]) -> anyhow::Result<()> {
    let (estimation, scheduling) = (cost::estimation(codecs), cost::scheduling(codecs));
    cost::draw(machine.out(), &estimation, &scheduling)?;
    let ours = json!({ "estimation": estimation, "scheduling": scheduling });
    let paper = json!({
        "fig_8_estimation_cycles": "100,000 to 300,000 (0.25 to 0.8 ms)",
        "fig_9_scheduling_cycles": "80 to 800 for up to 10 tasks",
    });
    let ran = Ran::Live(machine.facts());
    let table = cost::table(&estimation, &scheduling);
    let name = format!("{NAME}-costs");
    machine.publish(&ran, &name, &table, &ours, paper)
}

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
        "saved": [0.07, 0.72],
    })
}
