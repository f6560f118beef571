//! `onbeat analyze` on recordings whose periods are known.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::{checkout, onbeat, stderr, stdout};

/// The objects of `analyze --json`.
fn analyze(args: &[&str]) -> Vec<Value> {
    let output = onbeat(["analyze", "--json"].iter().chain(args));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
        .lines()
        .map(|line| {
            let object: Value = serde_json::from_str(line).expect("one object per line");
            let confidence = object["confidence"].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&confidence), "{confidence}");
            object
        })
        .collect()
}

fn trace(name: &str) -> String {
    checkout("tests/traces")
        .join(name)
        .to_str()
        .unwrap()
        .to_owned()
}

/// The periods found in the windows of the thread called `comm` that woke most.
fn periods(objects: &[Value], comm: &str) -> Vec<Option<f64>> {
    let of = |tid: u64| {
        objects
            .iter()
            .filter(move |o| o["comm"] == comm && o["tid"] == tid && o["complete"] == true)
    };
    let jobs = |tid: u64| of(tid).filter_map(|o| o["jobs"].as_u64()).sum::<u64>();
    let tids: BTreeSet<u64> = objects
        .iter()
        .filter(|o| o["comm"] == comm)
        .filter_map(|o| o["tid"].as_u64())
        .collect();
    let busiest = tids.into_iter().max_by_key(|&tid| jobs(tid)).unwrap();
    of(busiest).map(|o| o["period_ns"].as_f64()).collect()
}

#[test]
fn the_period_of_every_window_is_found_within_a_hundredth() {
    for (file, comm, period_ms, windows) in [
        ("mplayer25.l0", "mplayer", 40.0, 7),
        ("mplayer25.l3", "mplayer", 40.0, 7),
        ("asyncio40.l0", "python3", 40.0, 7),
        ("asyncio40.l3", "python3", 40.0, 7),
        ("ffmpegre30.l0", "ffmpeg", 33.3333, 7),
        ("ffmpegre30.l3", "ffmpeg", 33.3333, 8),
        ("rtappTableI.l0", "c", 100.0, 2),
    ] {
        let objects = analyze(&["--window", "1s", &trace(&format!("apps/{file}.txt.gz"))]);
        let found = periods(&objects, comm);
        assert_eq!(found.len(), windows, "{file}: {found:?}");
        for period_ns in found {
            let period_ns = period_ns.unwrap_or_else(|| panic!("{file}: a window without"));
            assert!(
                (period_ns / 1e6 / period_ms - 1.0).abs() < 0.01,
                "{file}: {period_ns}"
            );
        }
    }
}

#[test]
fn random_sleeps_have_no_period() {
    let objects = analyze(&["--window", "1s", &trace("apps/poisson.l0.txt.gz")]);
    let found = periods(&objects, "python3");
    assert!(found.len() >= 6, "{found:?}");
    assert_eq!(found.iter().flatten().count(), 0, "{found:?}");
}

#[test]
fn windows_start_at_the_first_event_and_only_the_last_is_partial() {
    let file = trace("apps/mplayer25.l0.txt.gz");
    let windows: BTreeSet<(u64, u64, bool)> = analyze(&["--window", "500ms", &file])
        .iter()
        .map(|o| {
            (
                o["from_ns"].as_u64().unwrap(),
                o["to_ns"].as_u64().unwrap(),
                o["complete"].as_bool().unwrap(),
            )
        })
        .collect();
    let (first, last) = (windows.first().unwrap().0, windows.last().unwrap().0);
    for &(from, to, complete) in &windows {
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
    assert!(
        page.contains("mplayer") && page.contains("every 40 ms"),
        "{page}"
    );
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
    assert!(
        stderr(&output).contains("write one with --report"),
        "{}",
        stderr(&output)
    );
}
