//! Misses against bandwidth: the programs of LFS++'s Fig. 5, 6, 7 and 10 in the simulated machine,
//! under the papers' controllers as written and under onbeat, over a margin on what each asks for.
//!
//! A margin makes a curve of each method, and curves can be compared at equal bandwidth.

mod beds;
mod curve;
mod margin;
mod run;

use rayon::prelude::*;

use onbeat_decide::predictor::Parameters;
use onbeat_lfspp::reference::{Adaptive, Lfs, LfsPlusPlus, ReferenceController as Reference};

use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::{Ran, Table, or_dash, percent, yes_no};
use crate::statistics::Interval;
use beds::Bed;
use curve::at;
use run::{Method, RunOutcome, run as run_one};

const NAME: &str = "misses-against-bandwidth";
/// Of each point, each with other jobs.
const RUNS: u64 = 10;

/// On what a method asks for. LFS++'s and the adaptive reservation's own x is 0, so it is this.
const MARGINS: [f64; 9] = [-0.2, -0.1, -0.05, 0.0, 0.1, 0.2, 0.35, 0.6, 1.0];

/// The bandwidths at which methods are compared: what is reserved over what is needed.
const RATIOS: [f64; 6] = [1.1, 1.15, 1.25, 1.5, 1.75, 2.0];

const UNMODIFIED: &str = "onbeat, unmodified";
const MARKED: &str = "onbeat, marked";

fn methods(bed: Bed) -> Vec<(&'static str, Method)> {
    let papers = Parameters {
        spread: 0.0,
        ..Parameters::default()
    };
    vec![
        ("default", Method::Default),
        ("chrt (SCHED_RR)", Method::RoundRobin),
        ("by hand", Method::ByHand),
        ("LFS", Method::Reference(Reference::Lfs(Lfs::default()))),
        (
            "LFS++",
            Method::Reference(Reference::LfsPlusPlus(LfsPlusPlus {
                parameters: papers,
                ..LfsPlusPlus::default()
            })),
        ),
        (
            "AR",
            Method::Reference(Reference::Adaptive(Adaptive {
                group: bed.group(),
                parameters: papers,
            })),
        ),
        (UNMODIFIED, Method::Onbeat { marked: false }),
        (MARKED, Method::Onbeat { marked: true }),
    ]
}

struct MarginPoint {
    margin: f64,
    late: Interval,
    latest_ms: Interval,
    reserved_over_needed: Option<Interval>,
}

struct Curve {
    bed: &'static str,
    method: &'static str,
    points: Vec<MarginPoint>,
    /// The share of late jobs at each of [`RATIOS`] in the runs that reach it.
    runs_at_ratio: Vec<Vec<f64>>,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let mut curves = Vec::new();
    for bed in Bed::ALL {
        for (name, method) in methods(bed) {
            machine.go_on()?;
            eprintln!("{}: {name}", bed.name());
            curves.push(curve_of(bed, name, &method));
        }
        figure(bed, &curves).draw(machine.out(), &format!("{NAME}-{}", bed.file()))?;
    }
    let told =
        format!("simulated, one CPU, 4 hogs from 5 s on, {RUNS} runs of 60 s for each point");
    let ran = Ran::computed(machine, told);
    machine.publish(&ran, NAME, &table(&curves));
    machine.publish(&ran, &format!("{NAME}-marked"), &equal_bandwidth(&curves));
    Ok(())
}

fn outcomes(bed: Bed, method: &Method, margin: f64) -> Vec<RunOutcome> {
    let seeds: Vec<u64> = (1..=RUNS).collect();
    let one = |seed: &u64| run_one(bed, method, margin, *seed);
    seeds.par_iter().map(one).collect()
}

fn point(margin: f64, outcomes: &[RunOutcome]) -> Option<MarginPoint> {
    let of = |of: fn(&RunOutcome) -> f64| outcomes.iter().map(of).collect::<Vec<f64>>();
    let reserved: Option<Vec<f64>> = outcomes.iter().map(|outcome| outcome.reserved).collect();
    let late = of(|outcome| outcome.late);
    late.iter()
        .all(|late| late.is_finite())
        .then(|| MarginPoint {
            margin,
            late: Interval::of(&late),
            latest_ms: Interval::of(&of(|outcome| outcome.latest_ms)),
            reserved_over_needed: reserved.map(|reserved| Interval::of(&reserved)),
        })
}

fn curve_of(bed: Bed, name: &'static str, method: &Method) -> Curve {
    let margins: &[f64] = match method {
        Method::Default | Method::RoundRobin => &[0.0],
        _ => &MARGINS,
    };
    let all: Vec<(f64, Vec<RunOutcome>)> = margins
        .iter()
        .map(|&margin| (margin, outcomes(bed, method, margin)))
        .collect();
    let runs_at_ratio: Vec<Vec<f64>> = RATIOS
        .iter()
        .map(|&ratio| {
            let of_run = |run: usize| {
                let points = all.iter().filter_map(|(_, outcomes)| {
                    let outcome = outcomes.get(run)?;
                    Some((outcome.reserved?, outcome.late))
                });
                at(&points.collect::<Vec<_>>(), ratio)
            };
            (0..RUNS as usize).filter_map(of_run).collect()
        })
        .collect();
    Curve {
        bed: bed.name(),
        method: name,
        points: all
            .iter()
            .filter_map(|(margin, outcomes)| point(*margin, outcomes))
            .collect(),
        runs_at_ratio,
    }
}

/// The margin at which a method runs as it comes: the papers' with x = 0.2, the larger one of those
/// they propose.
fn usual_margin(method: &str) -> f64 {
    match method {
        "LFS++" | "AR" => 0.2,
        _ => 0.0,
    }
}

fn table(curves: &[Curve]) -> Table {
    let rows = curves.iter().filter_map(|curve| {
        let usual = usual_margin(curve.method);
        let usual = curve.points.iter().find(|point| point.margin == usual);
        Some((curve, usual.or(curve.points.last())?))
    });
    Table::of(rows, |(curve, usual)| {
        let reserved = usual.reserved_over_needed;
        let late = |ratio: usize| {
            let of_runs = curve.runs_at_ratio.get(ratio);
            let late = of_runs.filter(|of_runs| of_runs.len() == RUNS as usize);
            or_dash(late, |late| Interval::of(late).percent())
        };
        [
            ("bed", curve.bed.to_owned()),
            ("method", curve.method.to_owned()),
            ("late", usual.late.percent()),
            ("latest by", format!("{:.0} ms", usual.latest_ms.mean)),
            (
                "reserved / needed",
                or_dash(reserved, |r| format!("{:.2}", r.mean)),
            ),
            ("late at 1.1", late(0)),
            ("at 1.15", late(1)),
            ("at 1.25", late(2)),
            ("at 1.5", late(3)),
            ("at 1.75", late(4)),
            ("at 2.0", late(5)),
        ]
    })
}

/// Unmodified against marked on each bed, at each bandwidth that each run of both reaches.
fn equal_bandwidth(curves: &[Curve]) -> Table {
    let mut rows = Vec::new();
    for bed in Bed::ALL.map(Bed::name) {
        let find = |method| curves.iter().find(|c| c.bed == bed && c.method == method);
        let (Some(unmodified), Some(marked)) = (find(UNMODIFIED), find(MARKED)) else {
            continue;
        };
        let of_runs = unmodified.runs_at_ratio.iter().zip(&marked.runs_at_ratio);
        for (ratio, (unmodified, marked)) in RATIOS.into_iter().zip(of_runs) {
            if [unmodified, marked]
                .iter()
                .all(|of| of.len() == RUNS as usize)
            {
                rows.push((bed, ratio, unmodified, marked));
            }
        }
    }
    Table::of(rows, |(bed, ratio, unmodified, marked)| {
        let differences = unmodified.iter().zip(marked).map(|(a, b)| a - b);
        let Interval { mean, half } = Interval::of(&differences.collect::<Vec<f64>>());
        let late = |of_runs| percent(Interval::of(of_runs).mean, 2);
        [
            ("bed", bed.to_owned()),
            ("reserved / needed", format!("{ratio:.2}")),
            ("late, unmodified", late(unmodified)),
            ("late, marked", late(marked)),
            (
                "difference",
                format!("{:+.2} ± {:.2}", mean * 100.0, half * 100.0),
            ),
            ("within one point", yes_no(mean <= 0.01)),
        ]
    })
}

/// Misses over bandwidth on a bed. No misses at all have no place on a logarithmic axis: they are
/// drawn at its end.
fn figure(bed: Bed, curves: &[Curve]) -> Figure {
    const LEAST: f64 = 1e-4;
    let of_bed = curves.iter().filter(|curve| curve.bed == bed.name());
    let line = |curve: &Curve| {
        let points = curve.points.iter().filter_map(|point| {
            let reserved = point.reserved_over_needed?.mean;
            Some((reserved, point.late.mean.max(LEAST)))
        });
        let mut points: Vec<(f64, f64)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Line::new(curve.method, Look::Marked, points)
    };
    Figure {
        title: format!("Late jobs over bandwidth: {}", bed.name()),
        x: Axis::linear("reserved / needed", 0.6..3.0),
        y: Axis::logarithmic("late jobs", LEAST * 0.8..1.2),
        lines: of_bed
            .filter(|curve| curve.points.len() > 1)
            .map(line)
            .collect(),
        names: Corner::UpperRight,
    }
}
