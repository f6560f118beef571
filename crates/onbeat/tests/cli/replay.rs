//! `onbeat replay`: the loop's decisions on recordings.

use std::fs;

use serde_json::Value;

use crate::{checkout, onbeat, stderr, stdout};

fn film() -> String {
    let path = checkout("tests/traces/onbeat/mplayer25.reserved.gz");
    path.to_str().unwrap().to_owned()
}

fn decisions(arguments: &[&str]) -> Vec<Value> {
    let output = onbeat([&["replay", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let lines = stdout(&output).lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The value of `what` for the threads called `comm`.
fn of<'a>(decisions: &'a [Value], comm: &str, what: &str) -> Vec<&'a Value> {
    let meant = |decision: &&Value| decision["comm"] == comm && decision["what"] == what;
    decisions.iter().filter(meant).collect()
}

#[test]
fn a_recorded_film_is_reserved_with_its_period_and_given_back_at_the_end() {
    let decisions = decisions(&[&film()]);
    let reserved = of(&decisions, "mplayer", "reserved");
    assert!(!reserved.is_empty());
    let changed = of(&decisions, "mplayer", "changed");
    let last = changed.last().or(reserved.last()).unwrap();
    let period_ns = last["new"]["period_ns"].as_f64().unwrap();
    assert!((period_ns / 40e6 - 1.0).abs() < 0.01, "{last}");
    assert!(!of(&decisions, "mplayer", "released").is_empty());
    // In the recording's time.
    let times = decisions.iter().map(|decision| decision["at_ns"].as_u64());
    assert!(times.is_sorted());
}

#[test]
fn the_same_recording_gives_the_same_decisions_and_the_log_has_them_too() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let first = decisions(&["--log", log.to_str().unwrap(), &film()]);
    assert_eq!(first, decisions(&[&film()]));
    let logged = fs::read_to_string(&log).unwrap();
    let logged = logged
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    assert_eq!(logged.collect::<Vec<Value>>(), first);
}

#[test]
fn the_tables_and_the_report_tell_what_was_decided() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let page = folder.path().join("page");
    let (report, page) = (report.to_str().unwrap(), page.to_str().unwrap());
    let output = onbeat(["replay", "--report", report, &film()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(
        text.contains("reserved") && text.contains("mplayer"),
        "{text}"
    );
    let written: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    assert!(!written["decisions"].as_array().unwrap().is_empty());
    let output = onbeat(["report", report, "-o", page]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn only_the_process_that_is_asked_for_is_decided_for() {
    let all = decisions(&[&film()]);
    let pid = of(&all, "mplayer", "reserved")[0]["pid"].clone();
    let its = decisions(&["--pid", &pid.to_string(), &film()]);
    assert!(!its.is_empty());
    assert!(its.iter().all(|decision| decision["pid"] == pid));
    let output = onbeat(["replay", "--pid", "1", &film()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("thread 1 is not in the recording"));
}

#[test]
fn a_recording_of_another_tool_is_replayed() {
    let trace = checkout("crates/sense/tests/recording/elsewhere/beat.pftrace");
    let output = onbeat(["replay", trace.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("python3"), "{}", stdout(&output));
}
