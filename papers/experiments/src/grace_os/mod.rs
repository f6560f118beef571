//! GRACE-OS: the paper's section 4 on the simulated machine, with the measured demands of real
//! codecs.

mod case;
mod codecs;
mod cost;
mod schemes;
mod sweeps;
mod tables;

use crate::machine::Machine;
use crate::results::{Ran, Table};
use codecs::Codec;

/// Codecs that run together, and the name of that.
type Set<'a> = (&'static str, Vec<&'a Codec>);

const TOGETHER: &str = "concurrent";

fn sets(codecs: &[Codec]) -> Vec<Set<'_>> {
    let alone = codecs.iter().map(|codec| (codec.name, vec![codec]));
    let together = codecs.iter().filter(|codec| codec.name != "tmn");
    alone.chain([(TOGETHER, together.collect())]).collect()
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let codecs = Codec::all()?;
    let sets = sets(&codecs);
    let names: Vec<&str> = sets.iter().map(|(name, _)| *name).collect();
    let runs = schemes::all(&sets);
    schemes::draw(machine.out(), &names, &runs)?;
    publish_runs(machine, &codecs, &names, &runs);

    let swept: Vec<Set> = sets
        .into_iter()
        .filter(|(name, _)| ["mpgplay", TOGETHER].contains(name))
        .collect();
    let (rho, best_effort) = (sweeps::rho(&swept), sweeps::best_effort(&swept));
    sweeps::draw(machine.out(), &rho, &best_effort)?;
    publish(machine, "grace-os-rho", &tables::sweep(&rho, "rho"));
    let kept = tables::sweep(&best_effort, "kept for best effort, MHz");
    publish(machine, "grace-os-best-effort", &kept);
    Ok(())
}

fn publish(machine: &Machine, name: &str, table: &Table) {
    let ran = Ran::computed(machine, "recorded demands, simulated");
    machine.publish(&ran, name, table);
}

/// Tables 5 to 10 and Fig. 12.
fn publish_runs(machine: &Machine, codecs: &[Codec], sets: &[&str], runs: &[schemes::SchemeRun]) {
    let publish = |name: &str, table: Table| publish(machine, name, &table);
    publish("grace-os", tables::energy(runs, TOGETHER));
    publish("grace-os-mpgplay", tables::energy(runs, "mpgplay"));
    publish("grace-os-changes", tables::changes(runs, sets));
    publish("grace-os-as-played", tables::as_played(runs));
    publish("grace-os-codecs", Table::of(codecs, Codec::row));
}

/// Fig. 8 and 9: what is timed on this machine.
pub(crate) fn costs(machine: &Machine) -> anyhow::Result<()> {
    let codecs = Codec::all()?;
    let (estimation, scheduling) = (cost::estimation(&codecs), cost::scheduling(&codecs));
    cost::draw(machine.out(), &estimation, &scheduling)?;
    let table = cost::table(&estimation, &scheduling);
    machine.publish(&Ran::live(machine), "grace-os-costs", &table);
    Ok(())
}
