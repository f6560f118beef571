//! Programs that say they missed deadlines, on a kernel without a scheduler that hears it: what
//! onbeat's main loop gives them, and what it gives to cheaters.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::results::{Table, percent};
use crate::srtgen::SrtLog;
use crate::vm::Guest;

const NAME: &str = "mdn-main-loop";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For how long each programs run, in the guest's time; the second half counts
    #[arg(long, value_name = "RUN_SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(4..=600))]
    seconds: u64,
}

/// Programs that run together: the guest's folder, what they are, and how many hogs and criers.
const MIXES: [(&str, &str, usize, usize); 6] = [
    ("honest", "25%, no rhythm, notifies what it missed", 2, 1),
    (
        "no-period",
        "25%, no rhythm, cries 1000 times a second",
        2,
        1,
    ),
    ("flood", "CPU-bound, cries a million times a second", 1, 1),
    ("fig7a", "Fig. 7 (a): 50%, then 80% and crying", 1, 1),
    ("fig7b", "Fig. 7 (b): 40%, then CPU-bound and crying", 2, 1),
    ("many", "8 of 10%, no rhythm, all crying", 1, 8),
];

/// A mix's figures, in the second half of its time.
#[derive(Debug, Serialize)]
struct Figures {
    share: f64,
    /// The share of the programs beside them.
    others: f64,
    /// The share of the deadlines that those missed that cry.
    missed: f64,
    /// How many threads were raised.
    raised: u64,
}

#[derive(Debug, Serialize)]
struct Row {
    mix: &'static str,
    silent: Figures,
    crying: Figures,
    gained_points: f64,
}

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    let guest = Guest::new(NAME)
        .set("RUN_SECONDS", args.seconds)
        .boot(machine)?;
    let mut rows = Vec::new();
    for (folder, mix, hogs, criers) in MIXES {
        let figures = |word: &str| {
            let folder = guest.folder.join(format!("{folder}.{word}"));
            figures((hogs, criers), &folder, args.seconds)
        };
        let (silent, crying) = (figures("silent")?, figures("crying")?);
        rows.push(Row {
            mix,
            gained_points: (crying.share - silent.share) * 100.0,
            silent,
            crying,
        });
    }
    let paper = json!({
        "source": "Banachowski, Wu and Brandt, Fig. 7 (Linux with MDN)",
        "fig7a": "does not gain more resources",
        "fig7b": "quickly set to the same rate as the other CPU-bound tasks",
    });
    machine.publish(&guest.ran(), NAME, &table(&rows), &rows, paper)
}

fn figures((hogs, criers): (usize, usize), folder: &Path, seconds: u64) -> anyhow::Result<Figures> {
    let logs = |kind: &str, count: usize| -> anyhow::Result<Vec<SrtLog>> {
        (1..=count)
            .map(|n| SrtLog::read(&folder.join(format!("{kind}{n}.csv"))))
            .collect()
    };
    let (hogs, criers) = (logs("hog", hogs)?, logs("crier", criers)?);
    let begins = criers.first().and_then(SrtLog::begins).unwrap_or_default();
    let (half, whole) = (seconds as f64 / 2.0 * 1e9, seconds as f64 * 1e9);
    // A run that ends a little earlier ends with all of its opponents still there.
    let window = (begins + half, begins + whole * 0.97);
    let report = folder.join("report.json");
    let text = fs::read_to_string(&report).with_context(|| format!("no {}", report.display()))?;
    let report: Value = serde_json::from_str(&text)?;
    let missed: f64 = criers.iter().map(|log| log.missed(window)).sum();
    Ok(Figures {
        share: criers.iter().map(|log| log.share(window)).sum(),
        others: hogs.iter().map(|log| log.share(window)).sum(),
        missed: missed / criers.len() as f64,
        raised: report["protected"].as_u64().unwrap_or_default(),
    })
}

fn table(rows: &[Row]) -> Table {
    Table::of(rows, |row| {
        [
            ("programs", row.mix.to_owned()),
            ("share silent", percent(row.silent.share, 1)),
            ("crying", percent(row.crying.share, 1)),
            ("gained", format!("{:+.1} points", row.gained_points)),
            ("others silent", percent(row.silent.others, 1)),
            ("crying", percent(row.crying.others, 1)),
            ("missed silent", percent(row.silent.missed, 1)),
            ("crying", percent(row.crying.missed, 1)),
            ("raised", row.crying.raised.to_string()),
        ]
    })
}
