//! `onbeat analyze` on recordings whose periods are known.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::*;

/// The objects of `analyze --json`.
fn analyze(args: &[&str]) -> Vec<Value> {
    let output = onbeat(["analyze", "--json"].iter().chain(args));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let objects = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    objects.collect()
}

fn trace(name: &str) -> String {
    let path = checkout("tests/traces").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn windows_start_at_the_first_event_and_only_the_last_is_partial() {
    let file = trace("apps/mplayer25.l0.txt.gz");
    let windows = analyze(&["--window", "500ms", &file]);
    let ends = |o: &Value| ["from_ns", "to_ns"].map(|field| o[field].as_u64().unwrap());
    let windows: BTreeSet<([u64; 2], bool)> = windows
        .iter()
        .map(|o| (ends(o), o["complete"] == true))
        .collect();
    let [first, last] = [windows.first(), windows.last()].map(|it| it.unwrap().0[0]);
    for &([from, to], complete) in &windows {
        assert_eq!((from - first) % 500_000_000, 0);
        assert_eq!(to - from == 500_000_000, complete);
        assert!(complete || from == last);
    }
    let whole = analyze(&[&file]);
    assert!(whole.iter().all(|o| o["complete"] == true));
    assert_eq!(whole.first().unwrap()["from_ns"].as_u64(), Some(first));
}

#[test]
fn a_csv_is_task_zero_and_six_wakeups_are_enough_to_be_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("six.csv");
    let csv = |count: u64| -> String {
        (0..count)
            .map(|n| format!("{},0,0\n", 7_000 + n * 20_000_000))
            .collect()
    };
    fs::write(&file, csv(5)).unwrap();
    assert_eq!(analyze(&[file.to_str().unwrap()]), Vec::<Value>::new());
    fs::write(&file, csv(6)).unwrap();
    let objects = analyze(&[file.to_str().unwrap()]);
    assert_eq!(objects.len(), 1);
    assert_eq!(objects[0]["tid"], 0);
    assert_eq!(objects[0]["from_ns"], 7_000);
    assert_eq!(objects[0]["to_ns"], 100_007_000);
    fs::write(&file, csv(50)).unwrap();
    let objects = analyze(&[file.to_str().unwrap()]);
    assert_eq!(objects[0]["period_ns"], 20_000_000);
    assert_eq!(objects[0]["jobs"], 50);
}

#[test]
fn the_table_has_a_line_per_thread_and_says_what_it_leaves_out() {
    let output = onbeat(["analyze", &trace("apps/rtappTableI.l0.txt.gz")]);
    let table = stdout(&output);
    let line = |name: &str| {
        table
            .lines()
            .find(|line| line.split_whitespace().nth(1) == Some(name))
            .unwrap_or_else(|| panic!("no {name} in\n{table}"))
    };
    assert!(line("a").contains(" 3.505 ms "), "{table}");
    assert!(line("b").contains(" 8.22"), "{table}");
    assert!(line("c").contains("100 ms"), "{table}");
    assert!(table.starts_with("thread  name"), "{table}");
}

#[test]
fn a_recording_becomes_a_page_and_a_timeline() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, page, timeline) = (path("run.json"), path("run.html"), path("run.perfetto"));
    let trace = checkout("tests/traces/apps/mplayer25.l3.txt.gz");
    let trace = trace.to_str().unwrap();
    let analysed = onbeat(["analyze", trace, "--report", &json, "--perfetto", &timeline]);
    assert_eq!(analysed.status.code(), Some(0), "{}", stderr(&analysed));
    let drawn = onbeat(["report", &json, "-o", &page]);
    assert_eq!(drawn.status.code(), Some(0), "{}", stderr(&drawn));
    let page = fs::read_to_string(page).unwrap();
    has(&page, &["mplayer", "every 40 ms"]);
    assert_eq!(page.matches("<svg").count(), 4);
    let timeline = fs::read(timeline).unwrap();
    let bursts = timeline.windows(4).filter(|window| window == b"runs");
    assert_eq!(bursts.count(), 359, "as many as analyze counts wakeups");
}

#[test]
fn what_is_no_report_is_told_with_what_to_do() {
    let output = onbeat([
        "report",
        checkout("tests/traces/truth.json").to_str().unwrap(),
        "-o",
        "/dev/null",
    ]);
    has(stderr(&output), &["write one with --report"]);
}
