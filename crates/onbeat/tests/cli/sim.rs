//! `onbeat sim` on the examples.

use std::fs;

use serde_json::Value;

use crate::{checkout, onbeat, stderr, stdout};

fn example(name: &str) -> String {
    let path = checkout("examples").join(name);
    path.to_str().unwrap().to_owned()
}

/// The objects of `sim --json`.
fn sim(args: &[&str]) -> Vec<Value> {
    let output = onbeat(["sim", "--json"].iter().chain(args));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let lines = stdout(&output).lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn miss_ratio(run: &Value, task: &str) -> f64 {
    let tasks = run["tasks"].as_array().unwrap();
    let task = tasks.iter().find(|t| t["name"] == task).unwrap();
    task["missed"].as_f64().unwrap() / task["jobs"].as_f64().unwrap()
}

#[test]
fn onbeat_keeps_a_simulated_player_on_the_beat_that_misses_without_it() {
    let with = sim(&[&example("onbeat.toml")]);
    assert!(with[0]["changes"].as_u64().unwrap() > 0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("without.toml");
    let text = fs::read_to_string(example("onbeat.toml")).unwrap();
    fs::write(
        &path,
        text.replace("[onbeat]\npredictor = \"percentile\"\n", ""),
    )
    .unwrap();
    let without = sim(&[path.to_str().unwrap()]);
    let (with, without) = (
        miss_ratio(&with[0], "player"),
        miss_ratio(&without[0], "player"),
    );
    assert!(
        without > 0.2 && with < 0.05,
        "{without} without, {with} with"
    );
}

#[test]
fn a_liar_hurts_itself_only_in_every_run_of_a_sweep() {
    let runs = sim(&["--seed", "1-4", &example("overload.toml")]);
    let seeds: Vec<u64> = runs.iter().filter_map(|run| run["seed"].as_u64()).collect();
    assert_eq!(seeds, [1, 2, 3, 4]);
    for run in &runs {
        assert_eq!(miss_ratio(run, "honest"), 0.0);
        assert!(miss_ratio(run, "liar") > 0.9);
    }
}

#[test]
fn jobs_and_timeline_hold_every_job() {
    let folder = tempfile::tempdir().unwrap();
    let (jobs, timeline) = (folder.path().join("jobs.csv"), folder.path().join("t.json"));
    let runs = sim(&[
        &example("overload.toml"),
        "--jobs",
        jobs.to_str().unwrap(),
        "--timeline",
        timeline.to_str().unwrap(),
    ]);
    let done = usize::try_from(runs[0]["jobs"].as_u64().unwrap()).unwrap();
    let csv = fs::read_to_string(jobs).unwrap();
    assert_eq!(csv.lines().count(), done + 1);
    assert!(csv.contains("\nhonest.8,"));
    let timeline: Value = serde_json::from_str(&fs::read_to_string(timeline).unwrap()).unwrap();
    let events = timeline["traceEvents"].as_array().unwrap();
    let ends = events.iter().filter(|event| event["ph"] == "e").count();
    assert_eq!(ends, done);
}

#[test]
fn two_runs_cannot_share_a_timeline() {
    let output = onbeat([
        "sim",
        "--seed",
        "1-2",
        "--timeline",
        "x",
        &example("player.toml"),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("give one file and one seed"));
}
