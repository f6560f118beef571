//! Holds the figures of README.md and docs/ against the figures that the experiments' commands
//! wrote beside their READMEs.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

/// The checkout.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

pub(crate) fn figures(experiment: &str) -> Value {
    let path = format!("{ROOT}/experiments/{experiment}.json");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut figures: Value = serde_json::from_str(&text).unwrap();
    figures["ours"].take()
}

/// Whether the kept figures of an experiment are those that its code makes now. `within` is a JSON
/// pointer to the part of them that was made again, empty for all.
pub(crate) fn assert_kept(experiment: &str, within: &str, made: &impl Serialize) {
    let kept = figures(experiment);
    let kept = kept.pointer(within).unwrap_or(&Value::Null);
    let made = serde_json::to_value(made).unwrap();
    assert!(
        is_near(kept, &made),
        "experiments/{experiment}.json is older than the code that it measures: run the experiment \
         with --readme.\nkept: {kept}\nmade: {made}"
    );
}

/// Equal, but for the last digits of what is computed with another machine's arithmetic.
fn is_near(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) else {
                return false;
            };
            (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_near(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| is_near(a, b)))
        }
        _ => a == b,
    }
}

/// The text of a document, each wrapped line joined to the next.
fn document(name: &str) -> String {
    let text = fs::read_to_string(Path::new(ROOT).join(name)).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn assert_says(name: &str, claim: &str) {
    assert!(
        document(name).contains(claim),
        "{name} does not say '{claim}', as its experiment does"
    );
}

/// The least and the most of a figure of onbeat's own predictor, over the programs.
fn of_default_predictor(rows: &Value, figure: &str) -> (f64, f64) {
    let rows = rows.as_array().unwrap().iter();
    let ours = rows.filter(|row| {
        row["family"] == "percentile, learnt spread" && row["demands"] != "mean of all"
    });
    let figures: Vec<f64> = ours
        .map(|row| row["usual"][figure].as_f64().unwrap())
        .collect();
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    (least, figures.iter().copied().fold(0.0, f64::max))
}

#[test]
fn what_a_learnt_budget_costs_and_misses_is_what_the_predictors_table_has() {
    let rows = figures("predictors/predictors");
    let (least, most) = of_default_predictor(&rows, "reserved_over_used");
    let costs = format!("{least:.1} to {most:.1} times for films");
    let (least, most) = of_default_predictor(&rows, "miss_ratio");
    let misses = format!("{:.1} to {:.1}% of", least * 100.0, most * 100.0);
    assert_says("README.md", &costs);
    assert_says("docs/limits.md", &costs);
    assert_says("README.md", misses.trim_end_matches(" of"));
    assert_says("docs/limits.md", &misses);
}

/// The share of late jobs of a method on a bed, at a margin, in percent.
fn late(bed: &str, method: &str, margin: f64) -> f64 {
    let curves = figures("misses-against-bandwidth/misses-against-bandwidth");
    let mut curves = curves.as_array().unwrap().iter();
    let curve = curves.find(|curve| curve["bed"] == bed && curve["method"] == method);
    let mut points = curve.unwrap()["points"].as_array().unwrap().iter();
    let point = points.find(|point| point["margin"] == margin).unwrap();
    point["late"]["mean"].as_f64().unwrap() * 100.0
}

#[test]
fn the_papers_page_has_the_late_jobs_of_the_controllers_as_written() {
    let encoder = |method| late("encoder (Fig. 7)", method, 0.2);
    let claim = format!(
        "late at x = 0.2: LFS++ {:.1}%, adaptive reservations {:.1}%",
        encoder("LFS++"),
        encoder("AR")
    );
    assert_says("experiments/papers.md", &claim);
    let fall = late("frequency (Fig. 10)", "LFS++", 0.2);
    let claim = format!("late for {fall:.1}% of the next 30 s");
    assert_says("experiments/papers.md", &claim);
}
