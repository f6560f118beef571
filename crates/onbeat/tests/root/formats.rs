//! `docs/formats.md` and `docs/report.md` list exactly the fields of `--report` and `--log`.

use crate::documented::{documented, written};
use crate::*;

const BEATS_FOR_EVER: &str = "
import time
due = time.monotonic()
while True:
    due += 0.02
    time.sleep(max(0, due - time.monotonic()))
";

#[test]
fn a_dry_run_logs_and_reports_the_fields_that_are_documented_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let beats = Mortal::spawn(Command::new("python3").args(["-c", BEATS_FOR_EVER]));
    let mut attach = onbeat(folder.path());
    attach
        .args(["attach", "--always", "--dry-run", "--quiet", "--report"])
        .arg(path("report.json"))
        .arg("--log")
        .arg(path("log.jsonl"))
        .arg(beats.id().to_string());
    let mut attach = Mortal::spawn(&mut attach);
    let entry = eventually("the reservation of a thread with a rhythm", || {
        let log = fs::read_to_string(path("log.jsonl")).ok()?;
        let mut entries = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        entries.find(|entry: &Value| entry["why"].to_string().contains("it has a period of"))
    });
    assert_eq!(policy(beats.id()), libc::SCHED_OTHER);
    assert_eq!(policy(attach.id()), libc::SCHED_OTHER);
    assert_eq!(entry["tid"], beats.id());
    let reservation: Vec<_> = written(&entry["new"]).into_iter().collect();
    assert_eq!(reservation, ["deadline_ns", "period_ns", "runtime_ns"]);
    assert_eq!(written(&entry), documented("What `--log` writes"));

    assert_eq!(attach.ends(libc::SIGTERM), Some(0));
    let report = fs::read(path("report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["threads"][0]["tid"], beats.id());
    assert_eq!(report["threads"][0]["application"], beats.id());
    assert_eq!(report["applications"][0]["pid"], beats.id());
    assert_eq!(report["applications"][0]["members"], 1);
    assert_eq!(written(&report), documented("What `--report` writes"));
}
