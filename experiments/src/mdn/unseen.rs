//! Deadlines that onbeat's main loop cannot know: of programs without a rhythm, and of frames that
//! are due before their period is over. The table tells the worth of a missed deadline notification
//! to them, and to a liar.

use onbeat_model::{Instant, Span};
use onbeat_sim::workload::{Arrival, Demand, Film, Notifies};
use onbeat_sim::{Work, Workload};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;

use super::deadlines::missed;
use super::simulated::run_boosting;
use super::{Outcome, VARIATION};
use crate::machine::Machine;
use crate::results::{Ran, Table, publish};
use crate::simulated::hog;
use crate::spread::Spread;

const NAME: &str = "mdn-unseen";
const SECONDS: u64 = 100;
const RUNS: u64 = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Case {
    /// Answers requests, which come at random.
    Requests,
    /// Reads what a writer sends at random, and is behind for a while after many at once.
    Reader,
    /// A film whose frames are due before the next begins.
    Frame,
    /// The same beside another program with a reservation, and a shorter period.
    FrameBesideReserved,
    /// The first, which notifies a thousand times a second of its computing.
    LyingRequests,
    /// CPU-bound, a thousand notifications a second.
    LyingBound,
}

impl Case {
    const ALL: [Self; 6] = [
        Self::Requests,
        Self::Reader,
        Self::Frame,
        Self::FrameBesideReserved,
        Self::LyingRequests,
        Self::LyingBound,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests at random, 7.5%, due within 60 ms",
            Self::Reader => "a reader of messages at random, 20%, due within 150 ms",
            Self::Frame => "frames at 25 Hz, 20%, due within 14 ms",
            Self::FrameBesideReserved => "the same beside a reservation of 5 ms in 10 ms",
            Self::LyingRequests => "liar: requests at random, 7.5%, 1000 mdn() a second",
            Self::LyingBound => "liar: CPU-bound, 1000 mdn() a second",
        }
    }

    const fn is_lying(self) -> bool {
        matches!(self, Self::LyingRequests | Self::LyingBound)
    }

    /// CPU-bound programs that onbeat is not told of.
    const fn beside(self) -> usize {
        3
    }

    /// The program that is judged first, and others that onbeat keeps on the beat.
    fn programs(self, seed: u64, says: bool) -> Vec<Workload> {
        let ms = Span::from_ms;
        let notifies = match says {
            false => Notifies::Never,
            true if self.is_lying() => Notifies::Every(Work::at_full_speed(ms(1))),
            true => Notifies::WhenLate,
        };
        let random = |mean, least, most, due| {
            let last = Instant::ZERO;
            Workload::new(
                Arrival::Poisson { mean, last },
                Demand::Uniform(least, most),
            )
            .with_deadline(due)
        };
        let frame = || {
            let film = Film::of_seed(seed).varied(VARIATION);
            Workload::periodic(ms(40), Demand::Decoder(ms(8), film)).with_deadline(ms(14))
        };
        let judged = match self {
            Self::Requests | Self::LyingRequests => random(ms(200), ms(10), ms(20), ms(60)),
            Self::Reader => random(ms(50), ms(6), ms(14), ms(150)),
            Self::Frame | Self::FrameBesideReserved => frame(),
            Self::LyingBound => hog(Span::ZERO),
        };
        let judged = judged.notifying(notifies).seeded(seed, 0);
        match self {
            Self::FrameBesideReserved => {
                vec![judged, Workload::periodic(ms(10), Demand::constant(ms(5)))]
            }
            _ => vec![judged],
        }
    }
}

/// The judged program over all runs, in percent.
#[derive(Clone, Copy, Debug, Serialize)]
struct Figures {
    missed: Spread,
    missed_mdn: Spread,
    cpu: Spread,
    cpu_mdn: Spread,
}

#[derive(Debug, Serialize)]
struct Row {
    case: Case,
    #[serde(flatten)]
    figures: Figures,
}

/// Runs every case with and without notifications, and publishes table and JSON.
pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for case in Case::ALL {
        machine.go_on()?;
        eprintln!("{}", case.name());
        let figures = figures(case, RUNS);
        rows.push(Row { case, figures });
    }
    let ran = Ran::Computed(format!(
        "the simulated machine: {RUNS} runs of {SECONDS} s for each figure, with other jobs each"
    ));
    publish(machine.out(), &ran, NAME, &table(&rows), &rows, json!({}))
}

fn figures(case: Case, runs: u64) -> Figures {
    let one = |seed: u64, says| {
        let kept = case.programs(seed, says);
        let ran = run_boosting(&kept, case.beside(), Span::from_secs(SECONDS));
        ran.into_iter().next().unwrap_or_default()
    };
    let seeds: Vec<u64> = (1..=runs).collect();
    let all = |says| -> Vec<Outcome> { seeds.par_iter().map(|&seed| one(seed, says)).collect() };
    let (silent, saying) = (all(false), all(true));
    let spread = |outcomes: &[Outcome], of: fn(&Outcome) -> f64| {
        Spread::of(&outcomes.iter().map(of).collect::<Vec<f64>>())
    };
    let cpu = |outcome: &Outcome| outcome.cpu_percent(0, SECONDS as usize);
    Figures {
        missed: spread(&silent, Outcome::missed_percent),
        missed_mdn: spread(&saying, Outcome::missed_percent),
        cpu: spread(&silent, cpu),
        cpu_mdn: spread(&saying, cpu),
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "program, beside 3 that are CPU-bound",
        "missed",
        "missed, mdn()",
        "CPU",
        "CPU, mdn()",
    ]);
    for Row { case, figures } in rows {
        let if_due = |spread| match case {
            Case::LyingBound => "-".to_owned(),
            _ => missed(spread),
        };
        let cpu = |spread: Spread| format!("{:.1}%", spread.mean);
        table.row([
            case.name().to_owned(),
            if_due(figures.missed),
            if_due(figures.missed_mdn),
            cpu(figures.cpu),
            cpu(figures.cpu_mdn),
        ]);
    }
    table
}
