//! Fig. 13 and 14, and beyond: the energy over rho, over the share kept for best effort, and where
//! power has a part that does not depend on the speed.

use std::path::Path;

use onbeat_sim::policy::grace::{GraceSettings, Scheme};
use rayon::prelude::*;
use serde::Serialize;

use super::Set;
use super::case::SimulatedCase;
use super::codecs::Codec;
use super::schemes::{UPDATE_EVERY, powers, with_fixed};
use crate::plot::{Axis, Corner, Figure, Line, Look};

const RHO: [f64; 11] = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0];
const BEST_EFFORT_MHZ: [f64; 6] = [0.0, 5.0, 50.0, 100.0, 150.0, 200.0];
pub(super) const FIXED: [f64; 9] = [0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6];
pub(super) const SCHEMES: [Scheme; 3] = [
    Scheme::GraceOsAsWritten,
    Scheme::GraceOs,
    Scheme::JointForecast,
];

#[derive(Serialize)]
pub(super) struct SweepPoint {
    pub(super) codecs: &'static str,
    pub(super) scheme: &'static str,
    pub(super) at: f64,
    pub(super) energy: f64,
    pub(super) missed: f64,
}

#[derive(Serialize)]
pub(super) struct Static {
    pub(super) scheme: &'static str,
    pub(super) fixed: f64,
    pub(super) power: f64,
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

/// Where does slowing down stop paying?
pub(super) fn fixed_power(codecs: &[&Codec]) -> Vec<Static> {
    let schemes = [
        Scheme::Race,
        Scheme::StoUni,
        Scheme::GraceOs,
        Scheme::JointForecast,
    ];
    let outcomes = powers(codecs, &schemes);
    let case = SimulatedCase::new(codecs, GraceSettings::default());
    let mut all: Vec<Static> = outcomes
        .iter()
        .flat_map(|(scheme, outcome)| {
            FIXED.iter().map(|&fixed| Static {
                scheme,
                fixed,
                power: outcome.power(&with_fixed(fixed)),
            })
        })
        .collect();
    // No job is later than where the highest speed is.
    let race = outcomes
        .iter()
        .find(|(scheme, _)| *scheme == Scheme::Race.name());
    let schedule = race.map_or(&[][..], |(_, outcome)| &outcome.clairvoyant);
    let least = FIXED.iter().filter_map(|&fixed| {
        let power = case.mean_power(schedule, &with_fixed(fixed))?;
        Some(Static {
            scheme: "clairvoyant",
            fixed,
            power,
        })
    });
    all.extend(least);
    all
}

pub(super) fn draw(
    out: &Path,
    rho: &[SweepPoint],
    best_effort: &[SweepPoint],
    power: &[Static],
) -> anyhow::Result<()> {
    let lines = |points: &[SweepPoint]| -> Vec<Line> {
        let mut lines = Vec::new();
        for codecs in ["mpgplay", "concurrent"] {
            for scheme in SCHEMES.map(Scheme::name) {
                let of = points
                    .iter()
                    .filter(|p| p.codecs == codecs && p.scheme == scheme);
                let points = of.map(|p| (p.at, 100.0 * p.energy)).collect();
                lines.push(Line::new(
                    &format!("{codecs}, {scheme}"),
                    Look::Marked,
                    points,
                ));
            }
        }
        lines
    };
    let figure = |title: &str, x: Axis, lines, highest| Figure {
        title: title.to_owned(),
        x,
        y: Axis::linear("energy, % of full speed all the time", 0.0..highest),
        lines,
        names: Corner::UpperLeft,
    };
    let highest =
        |points: &[SweepPoint]| 140.0 * points.iter().map(|p| p.energy).fold(0.01, f64::max);
    let x = Axis::linear("rho", 0.5..1.0);
    figure(
        "Energy over the share of deadlines to be met",
        x,
        lines(rho),
        highest(rho),
    )
    .draw(out, "grace-os-rho")?;
    let x = Axis::linear("kept for best effort, MHz", 0.0..200.0);
    figure(
        "Energy beside a program without end",
        x,
        lines(best_effort),
        highest(best_effort),
    )
    .draw(out, "grace-os-best-effort")?;
    let names = [
        "race-to-idle",
        "stochastic-uniform",
        "grace-os",
        "joint-forecast",
        "clairvoyant",
    ];
    let lines = names.map(|name| {
        let of = power.iter().filter(|p| p.scheme == name);
        Line::new(
            name,
            Look::Marked,
            of.map(|p| (p.fixed, 100.0 * p.power)).collect(),
        )
    });
    let x = Axis::linear("static part of the power of a busy CPU", 0.0..0.6);
    figure("Where slowing down stops paying", x, lines.into(), 100.0).draw(out, "grace-os-static")
}
