//! Tables 5 to 10 and Fig. 12: every scheme, for each codec alone and for four together.

use std::path::Path;

use onbeat_sim::policy::grace::{GraceSettings, Scheme};
use onbeat_sim::stochastic::schedule::Rounding;
use rayon::prelude::*;

use super::case::{CaseOutcome, SimulatedCase};
use super::codecs::Codec;
use crate::plot::{Axis, Corner, Figure, Line, Look};

pub(super) struct SchemeRun<'a> {
    pub(super) codecs: &'a str,
    pub(super) scheme: &'static str,
    pub(super) outcome: CaseOutcome,
    /// The energy over that of a clairvoyant who is late only where the highest speed is.
    pub(super) over_optimum: Option<f64>,
}

pub(super) const UPDATE_EVERY: Option<usize> = Some(10);

/// The name, and whether every speed between the lowest and the highest can be had.
fn variants() -> Vec<(&'static str, GraceSettings, bool)> {
    let settings = |scheme, rounding| GraceSettings {
        scheme,
        rounding,
        update_every: UPDATE_EVERY,
        ..GraceSettings::default()
    };
    let product = |rounding| settings(Scheme::GraceOs, rounding);
    let first = GraceSettings {
        update_every: None,
        ..GraceSettings::default()
    };
    let first_as_written = GraceSettings {
        scheme: Scheme::GraceOsAsWritten,
        ..first.clone()
    };
    let margin = GraceSettings {
        margin: true,
        ..product(Rounding::Up)
    };
    let timer = GraceSettings {
        tick: onbeat_model::Span::from_us(500),
        ..product(Rounding::Up)
    };
    let forecast = settings(Scheme::JointForecast, Rounding::Exact);
    let as_they_are = Scheme::ALL.into_iter();
    let as_they_are = as_they_are.map(|of| (of.name(), settings(of, Rounding::Up), false));
    let others = [
        ("grace-os, first 100 jobs", first, false),
        (
            "grace-os-as-written, first 100 jobs",
            first_as_written,
            false,
        ),
        ("grace-os, margin", margin, false),
        ("grace-os, 500 us timer", timer, false),
        ("grace-os, two speeds", product(Rounding::Two), false),
        ("grace-os, continuous", product(Rounding::Exact), true),
        ("joint-forecast, continuous", forecast, true),
    ];
    as_they_are.chain(others).collect()
}

/// All runs, those of a set together; the clairvoyant of each set first.
pub(super) fn all<'a>(sets: &'a [(&'a str, Vec<&'a Codec>)]) -> Vec<SchemeRun<'a>> {
    let variants = variants();
    let each: Vec<_> = sets
        .iter()
        .flat_map(|set| variants.iter().map(move |variant| (set, variant)))
        .collect();
    let mut runs: Vec<SchemeRun> = each
        .par_iter()
        .map(|((name, codecs), (scheme, settings, continuous))| {
            let mut case = SimulatedCase::new(codecs, settings.clone());
            case.continuous = *continuous;
            let mut outcome = case.run();
            if *continuous {
                // As many as there are speeds: no table shows them.
                outcome.speeds.clear();
            }
            SchemeRun {
                codecs: name,
                scheme,
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

/// The energy of a clairvoyant that is late only where the highest speed is, too.
fn optimum(runs: &[SchemeRun], codecs: &str) -> Option<f64> {
    let race = runs
        .iter()
        .find(|run| run.codecs == codecs && run.scheme == Scheme::Race.name());
    race.and_then(|race| race.outcome.least_as_late)
}

/// Fig. 12: each scheme's energy, one set of codecs beside the other.
pub(super) fn draw(out: &Path, sets: &[&str], runs: &[SchemeRun]) -> anyhow::Result<()> {
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
