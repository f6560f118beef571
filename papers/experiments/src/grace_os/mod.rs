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

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let codecs = Codec::all(None)?;
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
    machine.publish(&computed(machine), &name, table, ours)
}

fn computed(machine: &Machine) -> Ran {
    Ran::computed(machine, "recorded demands, simulated")
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
    machine.publish(&computed(machine), NAME, &table, &figures)?;
    let publish = |name: &str, table: &Table| {
        more(machine, name, table, &json!({ "runs": "in grace-os.json" }))
    };
    publish("mpgplay", &tables::energy(runs, "mpgplay"))?;
    publish("halves", &tables::halves(runs))?;
    publish("changes", &tables::changes(runs, sets))?;
    let played = tables::as_played(runs);
    let table = tables::as_played_table(&played);
    more(machine, "as-played", &table, &json!(played))?;

    let told: Vec<Value> = codecs.iter().map(Codec::told).collect();
    more(
        machine,
        "codecs",
        &Table::of(codecs, Codec::row),
        &json!(told),
    )
}

/// Fig. 8 and 9: what is timed on this machine.
pub(crate) fn costs(machine: &Machine) -> anyhow::Result<()> {
    let codecs = Codec::all(None)?;
    let (estimation, scheduling) = (cost::estimation(&codecs), cost::scheduling(&codecs));
    cost::draw(machine.out(), &estimation, &scheduling)?;
    let ours = json!({ "estimation": estimation, "scheduling": scheduling });
    let (ran, table) = (Ran::live(machine), cost::table(&estimation, &scheduling));
    machine.publish(&ran, &format!("{NAME}-costs"), &table, &ours)
}
