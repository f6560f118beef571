//! Fig. 13 and 14: the energy over rho, and over the share kept for best effort.

use std::path::Path;

use onbeat_sim::policy::grace::{GraceSettings, Scheme};
use rayon::prelude::*;

use super::Set;
use super::case::SimulatedCase;
use super::schemes::UPDATE_EVERY;
use crate::plot::{Axis, Corner, Figure, Line, Look};

const RHO: [f64; 11] = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0];
const BEST_EFFORT_MHZ: [f64; 6] = [0.0, 5.0, 50.0, 100.0, 150.0, 200.0];
pub(super) const SCHEMES: [Scheme; 2] = [Scheme::GraceOsAsWritten, Scheme::GraceOs];

pub(super) struct SweepPoint {
    pub(super) codecs: &'static str,
    pub(super) scheme: &'static str,
    pub(super) at: f64,
    pub(super) energy: f64,
    pub(super) missed: f64,
}

fn sweep(
    sets: &[Set],
    values: &[f64],
    math: bool,
    settings: impl Fn(Scheme, f64) -> GraceSettings + Sync,
) -> Vec<SweepPoint> {
    let each: Vec<_> = sets
        .iter()
        .flat_map(|set| {
            SCHEMES
                .iter()
                .flat_map(move |&scheme| values.iter().map(move |&at| (set, scheme, at)))
        })
        .collect();
    each.par_iter()
        .map(|&((codecs, list), scheme, at)| {
            let mut case = SimulatedCase::new(list, settings(scheme, at));
            case.math = math;
            let outcome = case.run();
            SweepPoint {
                codecs,
                scheme: scheme.name(),
                at,
                energy: outcome.energy,
                missed: outcome.miss_ratio(),
            }
        })
        .collect()
}

pub(super) fn rho(sets: &[Set]) -> Vec<SweepPoint> {
    sweep(sets, &RHO, false, |scheme, rho| GraceSettings {
        scheme,
        rho,
        update_every: UPDATE_EVERY,
        ..GraceSettings::default()
    })
}

/// Fig. 14: a program that computes without end takes what is left, and so much is kept for it.
pub(super) fn best_effort(sets: &[Set]) -> Vec<SweepPoint> {
    sweep(sets, &BEST_EFFORT_MHZ, true, |scheme, mhz| GraceSettings {
        scheme,
        best_effort: mhz / 1000.0,
        update_every: UPDATE_EVERY,
        ..GraceSettings::default()
    })
}

pub(super) fn draw(
    out: &Path,
    rho: &[SweepPoint],
    best_effort: &[SweepPoint],
) -> anyhow::Result<()> {
    let draw = |name: &str, title: &str, x: Axis, points: &[SweepPoint]| {
        let line = |codecs: &str, scheme: &str| {
            let of = points
                .iter()
                .filter(|p| p.codecs == codecs && p.scheme == scheme);
            let points = of.map(|p| (p.at, 100.0 * p.energy)).collect();
            Line::new(&format!("{codecs}, {scheme}"), Look::Marked, points)
        };
        let schemes = SCHEMES.map(Scheme::name);
        let lines = ["mpgplay", "concurrent"].map(|codecs| schemes.map(|of| line(codecs, of)));
        let highest = points.iter().map(|p| p.energy).fold(0.01, f64::max);
        let figure = Figure {
            title: title.to_owned(),
            x,
            y: Axis::linear("energy, % of full speed all the time", 0.0..140.0 * highest),
            lines: lines.into_iter().flatten().collect(),
            names: Corner::UpperLeft,
        };
        figure.draw(out, name)
    };
    let x = Axis::linear("rho", 0.5..1.0);
    let title = "Energy over the share of deadlines to be met";
    draw("grace-os-rho", title, x, rho)?;
    let x = Axis::linear("kept for best effort, MHz", 0.0..200.0);
    let title = "Energy beside a program without end";
    draw("grace-os-best-effort", title, x, best_effort)
}
