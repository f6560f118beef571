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
    let timer = GraceSettings {
        tick: onbeat_model::Span::from_us(500),
        ..product(Rounding::Up)
    };
    let as_they_are = Scheme::ALL.into_iter();
    let as_they_are = as_they_are.map(|of| (of.name(), settings(of, Rounding::Up), false));
    let others = [
        ("grace-os, first 100 jobs", first, false),
        (
            "grace-os-as-written, first 100 jobs",
            first_as_written,
            false,
        ),
        ("grace-os, 500 us timer", timer, false),
        ("grace-os, two speeds", product(Rounding::Two), false),
        ("grace-os, continuous", product(Rounding::Exact), true),
    ];
    as_they_are.chain(others).collect()
}

/// All runs, those of a set together.
pub(super) fn all<'a>(sets: &'a [(&'a str, Vec<&'a Codec>)]) -> Vec<SchemeRun<'a>> {
    let variants = variants();
    let each: Vec<_> = sets
        .iter()
        .flat_map(|set| variants.iter().map(move |variant| (set, variant)))
        .collect();
    each.par_iter()
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
            }
        })
        .collect()
}

/// Fig. 12: each scheme's energy, one set of codecs beside the other.
pub(super) fn draw(out: &Path, sets: &[&str], runs: &[SchemeRun]) -> anyhow::Result<()> {
    // As many as there are colours: the paper's six, and what kernels do today.
    let drawn = Scheme::ALL.into_iter();
    let left_out = |scheme: &Scheme| {
        matches!(
            scheme,
            Scheme::Race
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
