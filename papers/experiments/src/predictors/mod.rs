//! Which predictor gives which misses at which bandwidth (L10): every predictor, over windows and
//! spreads, on the demands of real decoders, in a simulated hard constant bandwidth server.

mod demands;
/// The server that onbeat-decide's own tests use.
#[path = "../../../../crates/decide/tests/simulation/mod.rs"]
pub(crate) mod simulation;
mod tuned;

use serde::Serialize;

use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::{Ran, Table, or_dash, percent};
use demands::Demands;
use tuned::Tuned;

const NAME: &str = "predictors";
const MEAN: &str = "mean of all";
const DEFAULT: &str = "percentile, learnt spread";

#[derive(Clone, Debug, Serialize)]
struct PredictorPoint {
    demands: &'static str,
    family: &'static str,
    /// The parameters that make it differ from others of its family.
    tuned: String,
    /// They are those of `onbeat run` without options.
    is_default: bool,
    miss_ratio: f64,
    longest_run_of_misses: usize,
    reserved_over_used: f64,
    exhaustions: usize,
    changes: usize,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let out = machine.out();
    let all_demands = Demands::all()?;
    let tuned = Tuned::all();
    let mut points = Vec::new();
    for demands in &all_demands {
        points.push(tuned.iter().map(|tuned| tuned.on(demands)).collect());
    }
    points.push(means(&points));
    for of_one in &points {
        let demands = of_one.first().map_or("", |point| point.demands);
        figure(of_one, demands).draw(out, &format!("{NAME}-{}", demands.replace(' ', "-")))?;
    }
    let points = points.concat();
    let ran = Ran::computed(machine, "recorded demands in a simulated hard server");
    let rows = rows(&points);
    machine.publish(&ran, NAME, &table(&rows), &rows)
}

fn means(points: &[Vec<PredictorPoint>]) -> Vec<PredictorPoint> {
    let count = points.len().max(1);
    let Some(first) = points.first() else {
        return Vec::new();
    };
    let of_one = |n: usize, point: &PredictorPoint| {
        let same = || points.iter().filter_map(move |points| points.get(n));
        let mean = |of: fn(&PredictorPoint) -> f64| same().map(of).sum::<f64>() / count as f64;
        let longest = same().map(|p| p.longest_run_of_misses).max();
        PredictorPoint {
            demands: MEAN,
            miss_ratio: mean(|p| p.miss_ratio),
            reserved_over_used: mean(|p| p.reserved_over_used),
            longest_run_of_misses: longest.unwrap_or_default(),
            exhaustions: same().map(|p| p.exhaustions).sum::<usize>() / count,
            changes: same().map(|p| p.changes).sum::<usize>() / count,
            ..point.clone()
        }
    };
    first
        .iter()
        .enumerate()
        .map(|(n, point)| of_one(n, point))
        .collect()
}

fn families() -> Vec<&'static str> {
    let mut families: Vec<&'static str> = Vec::new();
    for tuned in Tuned::all() {
        if !families.contains(&tuned.family) {
            families.push(tuned.family);
        }
    }
    families
}

/// Misses beyond this are too many: the wanted 1%.
const WANTED: f64 = 0.01;

/// A family on one program: as it comes, and its cheapest tuning that misses no more than wanted.
#[derive(Debug, Serialize)]
struct Row<'a> {
    demands: &'a str,
    family: &'static str,
    usual: Option<&'a PredictorPoint>,
    cheapest: Option<&'a PredictorPoint>,
}

fn rows(points: &[PredictorPoint]) -> Vec<Row<'_>> {
    let mut programs: Vec<&str> = points.iter().map(|point| point.demands).collect();
    programs.dedup();
    let row = |demands, family| {
        let of_it = || {
            let of_it = points.iter();
            of_it.filter(move |p| p.demands == demands && p.family == family)
        };
        let good = of_it().filter(|point| point.miss_ratio <= WANTED);
        Row {
            demands,
            family,
            usual: of_it().find(|point| point.is_default),
            cheapest: good.min_by(|a, b| a.reserved_over_used.total_cmp(&b.reserved_over_used)),
        }
    };
    let of_program = |demands| {
        families()
            .into_iter()
            .map(move |family| row(demands, family))
    };
    programs.into_iter().flat_map(of_program).collect()
}

/// Every predictor over all demands, and onbeat's default on each.
fn table(rows: &[Row<'_>]) -> Table {
    let shown = |row: &&Row| row.demands == MEAN || row.family == DEFAULT;
    Table::of(rows.iter().filter(shown), |row| {
        let misses = |p: Option<&PredictorPoint>| or_dash(p, |p| percent(p.miss_ratio, 2));
        let ratio =
            |p: Option<&PredictorPoint>| or_dash(p, |p| format!("{:.2}", p.reserved_over_used));
        let tuned = row.cheapest.map_or("none", |point| point.tuned.as_str());
        [
            ("demands", row.demands.to_owned()),
            ("predictor", row.family.to_owned()),
            ("by default: misses", misses(row.usual)),
            ("reserved / used", ratio(row.usual)),
            ("cheapest with 1% missed", tuned.to_owned()),
            ("misses", misses(row.cheapest)),
            ("reserved / used", ratio(row.cheapest)),
        ]
    })
}

/// The points that no other beats in both: fewer misses for more bandwidth.
fn front(points: &[&PredictorPoint]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<(f64, f64)> = points
        .iter()
        .map(|point| (point.reserved_over_used, point.miss_ratio))
        .collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut front: Vec<(f64, f64)> = Vec::new();
    for point in sorted {
        if front.last().is_none_or(|last| point.1 < last.1) {
            front.push(point);
        }
    }
    front
}

/// Misses against bandwidth: what each family can do at best.
fn figure(points: &[PredictorPoint], demands: &str) -> Figure {
    // No misses at all have no place on a logarithmic axis: they are drawn at its end.
    const LEAST: f64 = 1e-3;
    const MOST: f64 = 3.2;
    let line = |family| {
        let of_it: Vec<&PredictorPoint> = points.iter().filter(|p| p.family == family).collect();
        let shown = front(&of_it).into_iter().filter(|(x, _)| *x <= MOST);
        let shown = shown.map(|(x, y)| (x, y.max(LEAST))).collect();
        Line::new(family, Look::Marked, shown)
    };
    Figure {
        title: format!("Misses against bandwidth: {demands}"),
        x: Axis::linear("reserved / used", 0.8..MOST),
        y: Axis::logarithmic("jobs that end late", LEAST * 0.8..1.0),
        lines: families().into_iter().map(line).collect(),
        names: Corner::UpperRight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_is_what_nothing_beats_in_both() {
        let point = |reserved_over_used, miss_ratio| PredictorPoint {
            demands: "",
            family: "",
            tuned: String::new(),
            is_default: false,
            miss_ratio,
            longest_run_of_misses: 0,
            reserved_over_used,
            exhaustions: 0,
            changes: 0,
        };
        let points = [
            point(1.0, 0.5),
            point(2.0, 0.1),
            point(1.5, 0.6),
            point(3.0, 0.1),
        ];
        assert_eq!(
            front(&points.iter().collect::<Vec<_>>()),
            [(1.0, 0.5), (2.0, 0.1)]
        );
    }
}
