//! The gain of a program without a notification: one that computes for a while and naps, again and
//! again, beside programs that only compute.

use onbeat_model::Span;
use onbeat_sim::Workload;
use onbeat_sim::workload::{Arrival, Demand, Notifies};
use serde::Serialize;
use serde_json::json;

use super::Scheduler;
use super::knobs::Knobs;
use super::paper::Program;
use super::simulated::{Setting, run as simulate, workload};
use crate::machine::Machine;
use crate::results::{Ran, Table, publish};

const COMPUTES: Span = Span::from_ms(5);
const NAPS: Span = Span::from_us(60);
const SECONDS: u64 = 60;
const BESIDE: [usize; 2] = [1, 3];
const SCHEDULERS: [Scheduler; 4] = [
    Scheduler::Linux24,
    Scheduler::Best,
    Scheduler::Berate,
    Scheduler::Eevdf,
];

/// The napping program's share of the CPU.
#[derive(Debug, PartialEq, Serialize)]
struct Row {
    beside: usize,
    fair_percent: f64,
    /// For each of [`SCHEDULERS`].
    cpu_percent: Vec<f64>,
}

pub(super) fn run(machine: &Machine) -> anyhow::Result<()> {
    let rows = rows();
    let mut table = Table::of_columns(
        ["beside CPU-bound programs", "fair"]
            .into_iter()
            .chain(SCHEDULERS.map(Scheduler::name))
            .map(str::to_owned)
            .collect(),
    );
    for row in &rows {
        let part = |percent: &f64| format!("{percent:.0}%");
        let cells = [row.beside.to_string(), part(&row.fair_percent)];
        table.cells(
            cells
                .into_iter()
                .chain(row.cpu_percent.iter().map(part))
                .collect(),
        );
    }
    let ran = Ran::Computed(format!(
        "the simulated machine, {SECONDS} s for each figure"
    ));
    publish(machine.out(), &ran, "mdn-naps", &table, &rows, json!({}))
}

fn rows() -> Vec<Row> {
    BESIDE
        .map(|beside| Row {
            beside,
            fair_percent: 100.0 / (beside + 1) as f64,
            cpu_percent: SCHEDULERS.map(|scheduler| had(scheduler, beside)).into(),
        })
        .into()
}

fn had(scheduler: Scheduler, beside: usize) -> f64 {
    let after = Arrival::After {
        pause: NAPS,
        first: None,
    };
    let naps = Workload::new(after, Demand::constant(COMPUTES));
    let bound = |place| {
        let setting = Setting::of_seed(1);
        workload(Program::CpuBound, setting, place, Notifies::Never)
    };
    let programs = std::iter::once(naps).chain((1..=beside as u64).map(bound));
    let outcomes = simulate(
        scheduler,
        programs.collect(),
        Span::from_secs(SECONDS),
        Knobs::default(),
    );
    outcomes[0].cpu_percent(0, SECONDS as usize)
}
