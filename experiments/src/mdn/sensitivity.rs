//! How much the figures depend on what the papers leave open: the boost of Linux 2.4, the quantum
//! of BeRate, and what else wants the CPU beside it.

use onbeat_model::Span;
use serde::Serialize;
use serde_json::json;

use super::deadlines::{Figures, both, figures, missed};
use super::knobs::Knobs;
use super::paper::{HALF, MORE_THAN_HALF, MORE_THAN_QUARTERS, Mix, THIRDS};
use super::simulated::Setting;
use super::{Scheduler, VARIATION};
use crate::machine::Machine;
use crate::results::{Ran, Table, publish};

/// Films of each figure, and how long each is.
const FILMS: u64 = 20;
const SECONDS: u64 = 100;

/// Rules and programs with something set otherwise.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    scheduler: Scheduler,
    variation: u32,
    timer: Span,
    knobs: Knobs,
}

impl Way {
    const fn of(scheduler: Scheduler, name: &'static str, knobs: Knobs) -> Self {
        Self {
            name,
            scheduler,
            variation: VARIATION,
            timer: Span::ZERO,
            knobs,
        }
    }

    fn settings(self) -> impl Iterator<Item = Setting> {
        (1..=FILMS).map(move |seed| Setting {
            seed,
            variation: self.variation,
            timer: self.timer,
            knobs: self.knobs,
        })
    }
}

/// A program of a mix in a way.
#[derive(Debug, Serialize)]
struct Row {
    way: &'static str,
    mix: &'static str,
    program: String,
    #[serde(flatten)]
    figures: Figures,
}

/// Publishes a table for each question.
pub(super) fn run(machine: &Machine) -> anyhow::Result<()> {
    let linux = [HALF, THIRDS, MORE_THAN_HALF];
    let berate = [MORE_THAN_HALF, MORE_THAN_QUARTERS];
    one(machine, "mdn-boost", &boosts(), &linux)?;
    one(machine, "mdn-quantum", &quanta(), &berate)?;
    one(machine, "mdn-interruptions", &interruptions(), &berate)
}

fn one(machine: &Machine, name: &str, ways: &[Way], mixes: &[Mix]) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for way in ways {
        for mix in mixes {
            machine.go_on()?;
            let settings: Vec<Setting> = way.settings().collect();
            let runs = both(way.scheduler, *mix, &settings, SECONDS);
            for (place, program) in mix.programs.iter().enumerate() {
                if program.is_srt() {
                    rows.push(Row {
                        way: way.name,
                        mix: mix.name,
                        program: program.name(),
                        figures: figures(&runs, place, SECONDS as usize),
                    });
                }
            }
        }
    }
    let ran = Ran::Computed(format!(
        "the simulated machine: {FILMS} runs of {SECONDS} s for each figure"
    ));
    publish(
        machine.out(),
        &ran,
        name,
        &table(&rows, mixes),
        &rows,
        json!({}),
    )
}

/// A row for each way, and of each program what it missed without and with MDN.
fn table(rows: &[Row], mixes: &[Mix]) -> Table {
    let programs = mixes.iter().flat_map(|mix| {
        let srt = mix.programs.iter().filter(|program| program.is_srt());
        let beside = mix.programs.len() - 1;
        srt.map(move |program| format!("{} beside {beside}", program.name()))
    });
    let headings = ["missed, without and with MDN".to_owned()].into_iter();
    let headings: Vec<String> = headings.chain(programs).collect();
    let columns = headings.len() - 1;
    let mut table = Table::of_columns(headings);
    for of_way in rows.chunks(columns) {
        let way = of_way.first().map_or("", |row| row.way).to_owned();
        let cell = |row: &Row| {
            let Figures {
                missed: without,
                missed_mdn,
                ..
            } = row.figures;
            format!("{} {}", missed(without), missed(missed_mdn))
        };
        let cells = [way].into_iter().chain(of_way.iter().map(cell));
        table.cells(cells.collect());
    }
    table
}

/// The boosts that the paper leaves open; and quanta and timers of other kernels.
fn boosts() -> Vec<Way> {
    let knobs = Knobs::default();
    let linux = |name, knobs| Way::of(Scheduler::Linux24, name, knobs);
    let most = |quanta| Knobs {
        boost_most: Some(quanta),
        ..knobs
    };
    let decay = |ms| Knobs {
        boost_decay_ms: Some(ms),
        ..knobs
    };
    let average = |ms| Knobs {
        block_average_ms: Some(ms),
        ..knobs
    };
    let as_berate = Knobs {
        boost_most: Some(4),
        boost_step: Some(2),
        boost_decay_ms: Some(6000),
        block_average_ms: Some(500),
        ..knobs
    };
    let short = Knobs {
        quantum_ms: Some(30),
        ..knobs
    };
    vec![
        linux("8 quanta at most, 120 s a quantum, over 400 ms", knobs),
        linux("4 quanta at most", most(4)),
        linux("16 quanta at most", most(16)),
        linux("12 s a quantum", decay(12_000)),
        linux("240 s a quantum", decay(240_000)),
        linux("block ratio over 100 ms", average(100)),
        linux("block ratio over 2 s", average(2000)),
        linux("BeRate's: 2 a time, 4 at most, 6 s, over 500 ms", as_berate),
        Way {
            variation: 1000,
            ..linux("frames with variation 1000", knobs)
        },
        Way {
            timer: Span::from_ms(10),
            ..linux("timers each 10 ms", knobs)
        },
        linux("quanta of 30 ms", short),
        Way {
            timer: Span::from_ms(10),
            variation: 700,
            ..linux("quanta of 30 ms, timers each 10 ms, variation 700", short)
        },
    ]
}

/// The quantum of BeRate, which the paper does not tell.
fn quanta() -> Vec<Way> {
    let way = |name, ms| {
        let knobs = Knobs {
            quantum_ms: Some(ms),
            ..Knobs::default()
        };
        Way::of(Scheduler::Berate, name, knobs)
    };
    vec![
        way("35 ms", 35),
        way("40 ms", 40),
        way("45 ms", 45),
        way("52 ms", 52),
        way("60 ms", 60),
        way("62 ms", 62),
    ]
}

/// Interruptions that take the CPU for 0.1 ms now and then beside BeRate's programs.
fn interruptions() -> Vec<Way> {
    let way = |name, ms| {
        let knobs = Knobs {
            interrupt_ms: ms,
            ..Knobs::default()
        };
        Way::of(Scheduler::Berate, name, knobs)
    };
    vec![
        way("never", None),
        way("each 10 s", Some(10_000)),
        way("each 2 s", Some(2000)),
        way("each 500 ms", Some(500)),
        way("each 100 ms", Some(100)),
        way("each 40 ms", Some(40)),
    ]
}
