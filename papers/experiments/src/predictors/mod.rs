//! Which predictor gives which misses at which bandwidth (L10): every predictor, over windows and
//! spreads, on the demands of real decoders, in a simulated hard constant bandwidth server.

mod demands;
/// The server that onbeat-decide's own tests use.
#[path = "../../../../crates/decide/tests/simulation/mod.rs"]
pub(crate) mod simulation;
mod tuned;

use crate::machine::Machine;
use crate::results::{Ran, Table, or_dash, percent};
use demands::Demands;
use tuned::Tuned;

const NAME: &str = "predictors";
const MEAN: &str = "mean of all";
const DEFAULT: &str = "percentile, learnt spread";

#[derive(Clone)]
struct PredictorPoint {
    demands: &'static str,
    family: &'static str,
    /// The parameters that make it differ from others of its family.
    tuned: String,
    /// They are those of `onbeat run` without options.
    is_default: bool,
    miss_ratio: f64,
    reserved_over_used: f64,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let all_demands = Demands::all()?;
    let tuned = Tuned::all();
    let mut points = Vec::new();
    for demands in &all_demands {
        points.push(tuned.iter().map(|tuned| tuned.on(demands)).collect());
    }
    points.push(means(&points));
    let points = points.concat();
    let ran = Ran::computed(machine, "recorded demands in a simulated hard server");
    machine.publish(&ran, NAME, &table(&points));
    Ok(())
}

fn means(points: &[Vec<PredictorPoint>]) -> Vec<PredictorPoint> {
    let count = points.len().max(1);
    let Some(first) = points.first() else {
        return Vec::new();
    };
    let of_one = |n: usize, point: &PredictorPoint| {
        let same = || points.iter().filter_map(move |points| points.get(n));
        let mean = |of: fn(&PredictorPoint) -> f64| same().map(of).sum::<f64>() / count as f64;
        PredictorPoint {
            demands: MEAN,
            miss_ratio: mean(|p| p.miss_ratio),
            reserved_over_used: mean(|p| p.reserved_over_used),
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

/// Every predictor over all demands, and onbeat's default on each: as it comes, and its cheapest
/// tuning that misses no more than wanted.
fn table(points: &[PredictorPoint]) -> Table {
    let mut programs: Vec<&str> = points.iter().map(|point| point.demands).collect();
    programs.dedup();
    let of_program = |demands| families().into_iter().map(move |family| (demands, family));
    let shown = |(demands, family): &(&str, &str)| *demands == MEAN || *family == DEFAULT;
    Table::of(
        programs.into_iter().flat_map(of_program).filter(shown),
        |(demands, family)| {
            let of_it = || {
                points
                    .iter()
                    .filter(|p| p.demands == demands && p.family == family)
            };
            let usual = of_it().find(|point| point.is_default);
            let good = of_it().filter(|point| point.miss_ratio <= WANTED);
            let cheapest =
                good.min_by(|a, b| a.reserved_over_used.total_cmp(&b.reserved_over_used));
            let misses = |p: Option<&PredictorPoint>| or_dash(p, |p| percent(p.miss_ratio, 2));
            let ratio =
                |p: Option<&PredictorPoint>| or_dash(p, |p| format!("{:.2}", p.reserved_over_used));
            let tuned = cheapest.map_or("none", |point| point.tuned.as_str());
            [
                ("demands", demands.to_owned()),
                ("predictor", family.to_owned()),
                ("by default: misses", misses(usual)),
                ("reserved / used", ratio(usual)),
                ("cheapest with 1% missed", tuned.to_owned()),
                ("misses", misses(cheapest)),
                ("reserved / used", ratio(cheapest)),
            ]
        },
    )
}
