//! `onbeat replay`: the loop's decisions on recordings.

use std::fs;

use serde_json::Value;

use crate::*;

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

/// The table, the report, what the package for Python reads of it, `top`, the page and the timeline
/// count the same jobs of one run, and say from when on.
#[test]
fn every_view_of_a_run_counts_the_same_jobs_and_misses() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (report, page, timeline) = (path("report"), path("page"), path("timeline"));
    let files = ["--report", &report, "--perfetto", &timeline];
    let output = onbeat([&["replay"], &files[..], &[&film()]].concat());
    let table = stdout(&output).to_owned();
    let written: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!(written["history_dropped"]["bursts"], 0);
    assert!(!written["decisions"].as_array().unwrap().is_empty());
    let top = onbeat(["top", "--json", "--from", &report]);
    let top: Vec<Value> = stdout(&top)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut all_missed = 0;
    for thread in written["threads"].as_array().unwrap() {
        let is_same = |other: &&Value| other["tid"] == thread["tid"];
        let history = written["history"].as_array().unwrap();
        let history = history.iter().find(is_same).unwrap();
        let column = |of: &str, name: &str| -> Vec<u64> {
            let column = history[of][name].as_array().unwrap().iter();
            column.map(|at| at.as_u64().unwrap()).collect()
        };
        let ended = column("recent_jobs", "ended_ns");
        let deadlines = column("recent_jobs", "deadline_ns");
        let late = |(ended, deadline): &(&u64, &u64)| ended > deadline;
        let missed = ended.iter().zip(&deadlines).filter(late).count();
        all_missed += missed;
        assert!(thread["jobs"] == ended.len() && thread["missed"] == missed);
        let from = column("recent_jobs", "release_ns").first().copied();
        assert_eq!(thread["counted_from_ns"].as_u64(), from);
        let before = column("uncounted_jobs", "release_ns");
        assert!(before.last() <= from.as_ref(), "{before:?} {from:?}");
        let seen = top.iter().find(is_same).unwrap();
        for field in ["jobs", "missed", "counted_from_ns", "state"] {
            assert_eq!(seen[field], thread[field], "{field} in top");
        }
        let name = thread["comm"].as_str().unwrap();
        let row = table.lines().rfind(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.starts_with(&[name, &thread["tid"].to_string()])
        });
        has(row.unwrap(), &[format!(" {} ", ended.len())]);
    }
    assert!(all_missed > 0, "nothing to tell apart");
    onbeat(["report", &report, "-o", &page]);
    let page = fs::read_to_string(page).unwrap();
    let late = page.split("class=\"dots red\" d=\"").skip(1);
    let late = late.map(|dots| dots.split('"').next().unwrap().matches('M').count());
    assert_eq!(late.sum::<usize>(), all_missed, "red dots on the page");
    let timeline = fs::read(timeline).unwrap();
    let slices = timeline.windows(6).filter(|bytes| bytes == b"missed");
    assert_eq!(slices.count(), all_missed, "slices of the timeline");
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
    has(stderr(&output), &["thread 1 is not in the recording"]);
}
