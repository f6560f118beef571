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

/// The row of an experiment's figures that has these values.
fn row<'a>(rows: &'a Value, of: &[(&str, &str)]) -> &'a Value {
    let is_it = |row: &&Value| of.iter().all(|(key, value)| row[*key] == *value);
    let mut rows = rows.as_array().unwrap().iter();
    rows.find(is_it).unwrap_or_else(|| panic!("no row {of:?}"))
}

#[test]
fn what_cheaters_gain_is_what_their_table_has() {
    let gains = figures("mdn-cheaters/mdn-cheaters");
    let lines = [
        (
            "| still periodic, needs 80% where a fair share is 50%: in the first 5 s |",
            "fig7a",
            "_at_first",
        ),
        ("| after 5 s |", "fig7a", ""),
        (
            "| turns CPU-bound, a fair share is 33.3%: in the first 5 s |",
            "fig7b",
            "_at_first",
        ),
        ("| after 5 s |", "fig7b", ""),
    ];
    for (line, case, when) in lines {
        let cells = ["linux24", "best", "berate"].map(|scheduler| {
            let gain = row(&gains, &[("case", case), ("scheduler", scheduler)]);
            let mean = |what| gain[format!("{what}{when}")]["mean"].as_f64().unwrap();
            format!("{:.1}", mean("lying") - mean("honest"))
        });
        assert_says(
            "docs/schedulers.md",
            &format!("{line} {} |", cells.join(" | ")),
        );
    }
    let kernel = figures("mdn-cheaters/mdn-cheaters-guest");
    let berate = ["fig7a", "fig7b"].map(|case| {
        let gain = row(&kernel, &[("case", case), ("scheduler", "berate")]);
        let mean = |what| gain[what]["mean"].as_f64().unwrap();
        format!("{:.1}", mean("lying_at_first") - mean("honest_at_first"))
    });
    let claim = format!(
        "the lies gained {} points under `berate`",
        berate.join(" and ")
    );
    assert_says("docs/schedulers.md", &claim);
}

/// What a program misses without and with notifications, as the tables round it.
fn missed(scheduler: &str, mix: &str, program: &str) -> [String; 2] {
    let rows = figures("mdn-deadlines/mdn-deadlines");
    let of = [("scheduler", scheduler), ("mix", mix), ("program", program)];
    let of = row(&rows, &of);
    ["missed", "missed_mdn"].map(|what| {
        let mean = of[what]["mean"].as_f64().unwrap();
        let digits = if mean < 1.0 { 2 } else { 1 };
        format!("{mean:.digits$}")
    })
}

#[test]
fn what_notifications_are_worth_is_what_their_tables_have() {
    let [without, with] = missed("onbeat", "33-33-of-4", "srt (25 f/s, 33.3%)");
    let claim = format!("missed {with}% of the frames with them and {without}% without");
    assert_says("docs/tutorial.md", &claim);
    let rows = figures("mdn-deadlines/mdn-deadlines");
    let rows = rows.as_array().unwrap().iter();
    for row in rows.filter(|row| row["scheduler"] == "onbeat") {
        let mean = |what: &str| row[what]["mean"].as_f64().unwrap();
        let differ = mean("missed_mdn") - mean("missed");
        assert!(differ.abs() < 0.1, "it does help or harm: {row}");
    }
    let pair = |scheduler, mix, program| missed(scheduler, mix, program).join("%, ") + "%";
    let both = |mix, program, written, of_its_time| {
        let claim = format!(
            "{}; HZ=100 {}",
            pair(written, mix, program),
            pair(of_its_time, mix, program)
        );
        assert_says("experiments/papers.md", &claim);
    };
    both("50", "srt (25 f/s, 50%)", "linux24", "linux24-hz100");
    both("60", "srt (25 f/s, 60%)", "linux24", "linux24-hz100");
    both("60", "srt (25 f/s, 60%)", "berate", "berate-hz100");
}

#[test]
fn what_best_knows_of_a_period_is_what_its_table_has() {
    let rows = figures("mdn-progress/mdn-period");
    let rows = rows.as_array().unwrap();
    let right = |scheduler: &str, mdn: bool| {
        let is_it = |row: &&Value| {
            row["scheduler"] == scheduler
                && row["mdn"] == mdn
                && row["program"] == "srt (33 f/s, 62.5%)"
        };
        rows.iter().find(is_it).unwrap()["right_percent"]
            .as_f64()
            .unwrap()
    };
    let claim = format!(
        "right for {:.0}%, then {:.0}% of the time; {:.0}% with late notifications measured",
        right("best", false),
        right("best", true),
        right("best-measuring", true)
    );
    assert_says("experiments/papers.md", &claim);
}

#[test]
fn what_grace_os_takes_as_written_is_what_its_tables_have() {
    let played = figures("grace-os/grace-os-as-played");
    let energy = |scheme| {
        let of = row(&played, &[("scheme", scheme)]);
        let energy = of["ours"]["energy_s"].as_f64().unwrap();
        format!("{energy:.1}")
    };
    let six = [
        "worst-uniform",
        "worst-reclaim",
        "worst-stochastic-as-written",
        "stochastic-uniform",
        "stochastic-reclaim",
        "grace-os-as-written",
    ];
    let claim = format!(
        "{} as written; GRACE-OS with budgets of the first 100 jobs {}",
        six.map(energy).join(", "),
        energy("grace-os-as-written, first 100 jobs")
    );
    assert_says("experiments/papers.md", &claim);
    let runs = figures("grace-os/grace-os");
    let mpgplay = |scheme| row(&runs, &[("codecs", "mpgplay"), ("scheme", scheme)]);
    let figure = |scheme, what: &str| mpgplay(scheme)[what].as_f64().unwrap();
    let of_worst = |scheme| {
        let most = figure("worst-uniform", "energy_with_idle");
        100.0 * figure(scheme, "energy_with_idle") / most
    };
    let first = "grace-os-as-written, first 100 jobs";
    let claim = format!(
        "as written with budgets of the first 100 jobs {:.0}%; {:.1}% missed; the schedule here \
         {:.0}%; {:.1}%",
        of_worst(first),
        100.0 * figure(first, "missed"),
        of_worst("grace-os"),
        100.0 * figure("grace-os", "missed")
    );
    assert_says("experiments/papers.md", &claim);
}

#[test]
fn what_is_guaranteed_on_two_cpus_is_what_its_table_has() {
    let rows = figures("several-cpus/several-cpus");
    let rows = rows.as_array().unwrap();
    let is_it = |row: &&Value| row["cpus"] == 2 && row["load"] == 0.8;
    let of = rows.iter().find(is_it).unwrap();
    let guaranteed = 100.0 * of["global_guaranteed"].as_f64().unwrap();
    let claim = format!("of which {guaranteed:.1}% are guaranteed");
    assert_says("docs/limits.md", &claim);
}
