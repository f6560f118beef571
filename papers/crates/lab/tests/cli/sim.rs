//! `onbeat-lab sim` on the examples.

use std::fs;

use serde_json::Value;

use crate::{checkout, lab, stderr, stdout};

fn example(name: &str) -> String {
    let path = checkout("papers/examples").join(name);
    path.to_str().unwrap().to_owned()
}

/// The objects of `sim --json`.
fn sim(args: &[&str]) -> Vec<Value> {
    let output = lab(["sim", "--json"].iter().chain(args));
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
    let timeline = fs::read(timeline).unwrap();
    // Each job is told with what it executed.
    let told = timeline
        .windows(11)
        .filter(|window| window == b"executed_ns");
    assert_eq!(told.count(), done);
}

#[test]
fn a_sweep_in_parts_is_the_sweep_in_one() {
    let player = example("player.toml");
    let parts: Vec<Value> = ["1", "2", "3"]
        .iter()
        .flat_map(|seed| sim(&["--seed", seed, &player]))
        .collect();
    assert_eq!(parts, sim(&["--seed", "1-3", &player]));
}

#[test]
fn two_runs_cannot_share_a_timeline() {
    let output = lab([
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

/// The objects of `sim --from --json` on the recording of a player.
fn compare(args: &[&str]) -> Vec<Value> {
    let trace = checkout("tests/traces/apps/mplayer25.l0.txt.gz");
    let from = ["--from", trace.to_str().unwrap()];
    sim(&[&from, args].concat())
}

#[test]
fn a_recorded_player_is_compared_under_every_policy_and_machine() {
    let runs = compare(&["--cpus", "1,2", "--speed", "100%,40%", "--hogs", "3"]);
    let seen = &runs[0];
    assert_eq!(seen["policy"], "recorded");
    // GRACE-OS is at full speed only.
    assert_eq!(runs.len(), 1 + 2 * (12 + 11));
    for run in &runs {
        let player = &run["threads"][0];
        assert_eq!(player["comm"], "mplayer");
        assert!((player["period_ns"].as_f64().unwrap() / 40e6 - 1.0).abs() < 0.01);
        assert_eq!(player["jobs"], seen["threads"][0]["jobs"]);
        if run["speed"].as_f64().unwrap() < 1.0 {
            let executed = |run: &Value| run["threads"][0]["executed_ns"].as_u64();
            assert!(executed(run) > executed(seen));
        }
    }
    let one = |policy: &str| {
        let mut of = runs.iter().filter(|run| run["policy"] == policy);
        of.find(|run| run["cpus"] == 1 && run["speed"] == 1.0)
            .unwrap()
    };
    let p95 = |policy| {
        one(policy)["threads"][0]["response_time"]["p95_ns"]
            .as_u64()
            .unwrap()
    };
    assert!(p95("fair") > 2 * p95("fifo"), "beside hogs");
    assert!(one("plan")["threads"][0]["reservation"]["runtime_ns"].is_u64());
    assert!(one("onbeat")["changes"].as_u64().unwrap() > 0);
    assert_eq!(one("fair")["busy"], 1.0);
}

#[test]
fn what_a_comparison_asks_for_is_what_it_gets() {
    let runs = compare(&["--policy", "plan,fair", "--misses", "20%"]);
    let policies: Vec<&Value> = runs.iter().map(|run| &run["policy"]).collect();
    assert_eq!(policies, ["recorded", "plan", "fair"]);
    let strict = compare(&["--policy", "plan", "--misses", "1%"]);
    let runtime = |run: &Value| run["threads"][0]["reservation"]["runtime_ns"].as_u64();
    assert!(runtime(&strict[1]) > runtime(&runs[1]));
}

#[test]
fn the_jobs_of_one_run_are_a_recording_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = folder.path().join("jobs.csv");
    let jobs = jobs.to_str().unwrap();
    compare(&["--policy", "fifo", "--jobs", jobs]);
    let again = sim(&["--from", jobs, "--policy", "fifo"]);
    assert_eq!(again[1]["threads"][0]["comm"], "mplayer");
    assert_eq!(again[1]["threads"][0]["jobs"], 200);
}

#[test]
fn what_cannot_be_compared_is_told_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let wakeups = folder.path().join("wakeups.csv");
    fs::write(&wakeups, "1000\n2000\n3000\n").unwrap();
    let wakeups = wakeups.to_str().unwrap();
    let player = example("player.toml");
    let film = checkout("tests/traces/apps/mplayer25.l0.txt.gz");
    let film = film.to_str().unwrap();
    for (args, status, told) in [
        (vec!["--from", wakeups], 1, "a column demand_ns"),
        (vec!["--from", "/nowhere"], 1, "/nowhere"),
        (
            vec!["--from", wakeups, "--policy", "lottery"],
            2,
            "statistical",
        ),
        (vec!["--from", wakeups, &player], 2, "cannot be used with"),
        (vec![&player, "--hogs", "3"], 2, "--hogs"),
        (
            vec![&player, "--config", "prediction.spread=0.2"],
            2,
            "--config",
        ),
        (vec!["--from", wakeups, "--speed", "120%"], 2, "up to 100"),
        (
            vec!["--from", film, "--policy", "grace", "--speed", "50%"],
            1,
            "--policy grace is for the speed that was recorded",
        ),
        (vec![], 2, "<FILE>"),
    ] {
        let output = lab(["sim"].iter().chain(&args));
        assert_eq!(
            output.status.code(),
            Some(status),
            "{args:?} {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(told),
            "{told}: {}",
            stderr(&output)
        );
    }
}
