//! Tables 5 to 10 and Fig. 12: every scheme, for each codec alone and for four together.

use std::path::Path;

use onbeat_decide::stochastic::schedule::Rounding;
use onbeat_sim::policy::grace::{Scheme, Settings};
use onbeat_sim::scenario::Power;
use rayon::prelude::*;
use serde::Serialize;

use super::case::{Case, Outcome};
use super::codecs::Codec;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::Table;

/// One line of the table.
#[derive(Serialize)]
pub(super) struct Run<'a> {
    codecs: &'a str,
    scheme: String,
    #[serde(flatten)]
    outcome: Outcome,
    /// The energy over that of a clairvoyant who is late only where the highest speed is.
    over_optimum: Option<f64>,
}

/// The variants: the paper's six, the bounds of this machine, and what is beyond.
fn variants(update_every: Option<usize>) -> Vec<(String, Settings, bool)> {
    let settings = |scheme, rounding| Settings {
        scheme,
        rounding,
        update_every,
        ..Settings::default()
    };
    let mut all: Vec<_> = Scheme::ALL
        .into_iter()
        .map(|scheme| {
            (
                scheme.name().to_owned(),
                settings(scheme, Rounding::Up),
                false,
            )
        })
        .collect();
    let first = Settings {
        update_every: None,
        ..Settings::default()
    };
    let first_as_written = Settings {
        scheme: Scheme::GraceOsAsWritten,
        ..first.clone()
    };
    all.push(("grace-os, first 100 jobs".to_owned(), first, false));
    all.push((
        "grace-os-as-written, first 100 jobs".to_owned(),
        first_as_written,
        false,
    ));
    let margin = Settings {
        margin: true,
        ..settings(Scheme::GraceOs, Rounding::Up)
    };
    all.push(("grace-os, margin".to_owned(), margin, false));
    let timer = Settings {
        tick: onbeat_model::Span::from_us(500),
        ..settings(Scheme::GraceOs, Rounding::Up)
    };
    all.push(("grace-os, 500 us timer".to_owned(), timer, false));
    all.push((
        "grace-os, two speeds".to_owned(),
        settings(Scheme::GraceOs, Rounding::Two),
        false,
    ));
    all.push((
        "grace-os, continuous".to_owned(),
        settings(Scheme::GraceOs, Rounding::Exact),
        true,
    ));
    all.push((
        "joint-forecast, continuous".to_owned(),
        settings(Scheme::JointForecast, Rounding::Exact),
        true,
    ));
    all
}

/// All runs, those of a set together; the clairvoyant of each set first.
pub(super) fn all<'a>(
    sets: &'a [(&'a str, Vec<&'a Codec>)],
    update_every: Option<usize>,
) -> Vec<Run<'a>> {
    let variants = variants(update_every);
    let each: Vec<_> = sets
        .iter()
        .flat_map(|set| variants.iter().map(move |variant| (set, variant)))
        .collect();
    let mut runs: Vec<Run> = each
        .par_iter()
        .map(|((name, codecs), (scheme, settings, continuous))| {
            let mut case = Case::new(codecs, settings.clone());
            case.continuous = *continuous;
            let mut outcome = case.run();
            if *continuous {
                // As many as there are speeds: nobody reads them.
                outcome.speeds.clear();
                outcome.idle_at.clear();
            }
            Run {
                codecs: name,
                scheme: scheme.clone(),
                outcome,
                over_optimum: None,
            }
        })
        .collect();
    let optima: Vec<(&str, Option<f64>)> = sets
        .iter()
        .map(|(name, _)| (*name, optimum(&runs, name)))
        .collect();
    for run in &mut runs {
        let least = optima.iter().find(|(name, _)| *name == run.codecs);
        let least = least.and_then(|(_, least)| *least);
        run.over_optimum = least.map(|least| run.outcome.energy / least - 1.0);
    }
    runs
}

/// What a clairvoyant needs who is late only where the highest speed is, too.
fn optimum(runs: &[Run], codecs: &str) -> Option<f64> {
    let race = runs
        .iter()
        .find(|run| run.codecs == codecs && run.scheme == Scheme::Race.name());
    race.and_then(|race| race.outcome.least_as_late)
}

/// Energy, misses, idle share and changes of each run.
pub(super) fn table(runs: &[Run]) -> Table {
    let mut table = Table::new([
        "codecs",
        "scheme",
        "energy",
        "with idle",
        "over the optimum",
        "missed",
        "worst codec",
        "idle",
        "changes a job",
    ]);
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    for run in runs {
        let outcome = &run.outcome;
        table.row([
            run.codecs.to_owned(),
            run.scheme.clone(),
            percent(outcome.energy),
            percent(outcome.energy_with_idle),
            run.over_optimum.map_or("-".to_owned(), percent),
            percent(outcome.miss_ratio()),
            percent(outcome.worst_miss_ratio()),
            percent(outcome.idle),
            format!("{:.2}", outcome.changes_per_job),
        ]);
    }
    table
}

/// Tables 6, 8 and 9: where the busy time went.
pub(super) fn print_speeds(runs: &[Run]) {
    let mut table = Table::new([
        "codecs", "scheme", "300", "500", "600", "700", "800", "1000 MHz",
    ]);
    for run in runs.iter().filter(|run| !run.scheme.contains("continuous")) {
        let at = |mhz: f64| {
            let share = run.outcome.speeds.iter().find(|(speed, _)| *speed == mhz);
            share.map_or("-".to_owned(), |(_, share)| {
                format!("{:.1}%", 100.0 * share)
            })
        };
        let [a, b, c, d, e, f] = [300.0, 500.0, 600.0, 700.0, 800.0, 1000.0].map(at);
        table.row([run.codecs.to_owned(), run.scheme.clone(), a, b, c, d, e, f]);
    }
    println!(
        "\nThe share of the busy time at each speed:\n\n{}",
        table.to_markdown()
    );
}

/// So long the paper's four codecs play together, and mpgplay alone after them: from Table 10,
/// whose sums only fit so.
const TOGETHER_S: f64 = 30.0;
const ALONE_S: f64 = 200.0;
/// Table 10: seconds at full power, idle time at its speed.
const PAPER_S: [(Scheme, f64); 6] = [
    (Scheme::WrsUni, 56.7),
    (Scheme::WrsRec, 32.5),
    (Scheme::WrsStoAsWritten, 21.9),
    (Scheme::StoUni, 42.1),
    (Scheme::StoRec, 30.1),
    (Scheme::GraceOsAsWritten, 20.5),
];

/// Table 10 as the paper's run was: the energy of the four for their time, then that of mpgplay
/// alone for its.
pub(super) fn print_as_played(runs: &[Run]) {
    let mut table = Table::new([
        "scheme",
        "energy, s at full power",
        "of worst-uniform",
        "paper: energy",
        "of worst-uniform",
    ]);
    let of = |codecs: &str, scheme: Scheme| {
        let run = runs
            .iter()
            .find(|run| run.codecs == codecs && run.scheme == scheme.name());
        run.map_or(f64::NAN, |run| run.outcome.energy_with_idle)
    };
    let spent = |scheme| TOGETHER_S * of("concurrent", scheme) + ALONE_S * of("mpgplay", scheme);
    let [(_, paper_most), ..] = PAPER_S;
    let own = [Scheme::WrsSto, Scheme::GraceOs].map(|scheme| (scheme, None));
    let papers = PAPER_S.map(|(scheme, spent)| (scheme, Some(spent)));
    for (scheme, paper) in papers.into_iter().chain(own) {
        let share = |spent: f64, most: f64| format!("{:.0}%", 100.0 * spent / most);
        table.row([
            scheme.name().to_owned(),
            format!("{:.1}", spent(scheme)),
            share(spent(scheme), spent(Scheme::WrsUni)),
            paper.map_or("-".to_owned(), |paper| format!("{paper:.1}")),
            paper.map_or("-".to_owned(), |paper| share(paper, paper_most)),
        ]);
    }
    println!(
        "\nAs the paper's run was, {TOGETHER_S:.0} s together and {ALONE_S:.0} s of mpgplay alone:\n\n{}",
        table.to_markdown()
    );
}

/// Fig. 12: each scheme's energy, one set of codecs beside the other.
pub(super) fn draw(out: &Path, sets: &[&str], runs: &[Run]) -> anyhow::Result<()> {
    // As many as there are colours: the paper's six, what kernels do today, and the best.
    let drawn = Scheme::ALL.into_iter();
    let left_out = |scheme: &Scheme| {
        matches!(
            scheme,
            Scheme::Race
                | Scheme::Joint
                | Scheme::WrsStoAsWritten
                | Scheme::GraceOsAsWritten
                | Scheme::GraceOsOwnSpeeds
                | Scheme::GraceOsBounded
        )
    };
    let drawn = drawn.filter(|scheme| !left_out(scheme));
    let of = |beside: usize, scheme: &str| {
        let beside = beside as f64 * 0.06 - 0.21;
        let energy = |(at, codecs): (usize, &&str)| {
            let run = runs
                .iter()
                .find(|run| run.codecs == *codecs && run.scheme == scheme)?;
            Some((at as f64 + 1.0 + beside, 100.0 * run.outcome.energy))
        };
        sets.iter().enumerate().filter_map(energy).collect()
    };
    let names = drawn.map(Scheme::name).enumerate();
    let lines = names.map(|(beside, name)| Line::new(name, Look::Points, of(beside, name)));
    let numbered = sets.iter().enumerate();
    let numbered: Vec<String> = numbered
        .map(|(at, codecs)| format!("{} {codecs}", at + 1))
        .collect();
    let figure = Figure {
        title: "Energy of each scheme".to_owned(),
        x: Axis::linear(&numbered.join(", "), 0.5..sets.len() as f64 + 0.5),
        y: Axis::linear("energy, % of full speed all the time", 0.0..80.0),
        lines: lines.collect(),
        names: Corner::UpperLeft,
    };
    figure.draw(out, "grace-os-energy")
}

/// The mean power of schemes under a model.
pub(super) fn powers(
    codecs: &[&Codec],
    update_every: Option<usize>,
    schemes: &[Scheme],
) -> Vec<(&'static str, Outcome)> {
    schemes
        .par_iter()
        .map(|&scheme| {
            let settings = Settings {
                scheme,
                update_every,
                ..Settings::default()
            };
            (scheme.name(), Case::new(codecs, settings).run())
        })
        .collect()
}

/// The eq. 13 model with a part that does not depend on the speed; idle time draws nothing.
pub(super) fn with_fixed(fixed: f64) -> Power {
    Power {
        fixed,
        ..Power::default()
    }
}
