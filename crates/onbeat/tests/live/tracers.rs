//! The choice of `--tracer`: each hears all that a program does, and keeps it on the beat.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::copied::copy_program;
use crate::in_time::in_time;
use crate::{Folder, Mortal, eventually, needs_root, stderr, workload};

const BEAT: [&str; 3] = ["--jobs", "80", "beat:20000/500"];
const JOBS: usize = 80;
const JOB_NS: u64 = 500_000;

/// The words that begin `program` in time.
fn begun_in_time(program: &Path) -> Vec<OsString> {
    let first = in_time().iter().map(OsString::from);
    first.chain([program.into()]).collect()
}

/// Records the workload, these `words`, by `record`, which lacks file and program. However the
/// machine stalls, each job is a call to sleep, and takes its CPU time by its own clock. That the
/// period is found is tested in virtual time (`every_tracer_hears_a_program`).
fn hears_all(what: &str, folder: &Path, words: &[OsString], record: impl FnOnce() -> Command) {
    let file = folder.join("beat.onbeat");
    let output = record()
        .arg("-o")
        .arg(&file)
        .arg("--")
        .args(words)
        .args(BEAT)
        .stdin(Stdio::null())
        .output()
        .expect("onbeat starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains(" 0 lost"), "{}", stderr(&output));
    let recording = fs::read_to_string(&file).expect("there is a recording");
    let events = recording
        .lines()
        .map(|line| -> Value { serde_json::from_str(line).expect("it is JSON") });
    let bursts: Vec<Value> = events.filter(|event| event["event"] == "burst").collect();
    let ns = |burst: &Value, field: &str| burst[field].as_u64().expect("a number");
    let mut last = BTreeMap::new();
    for burst in &bursts {
        let ended = ns(burst, "blocked_ns");
        let before = last.insert(ns(burst, "tid"), ended);
        assert!(
            before.is_none_or(|before| before < ended),
            "{what}: {burst}"
        );
    }
    let executed: u64 = bursts.iter().map(|burst| ns(burst, "executed_ns")).sum();
    let hears_all = match what {
        "bpf-syscalls" => bursts.len() >= JOBS,
        _ => executed >= JOBS as u64 * JOB_NS,
    };
    assert!(
        hears_all,
        "{what}: {executed} ns in {} bursts",
        bursts.len()
    );
}

#[test]
fn each_tracer_hears_all_that_a_program_does() {
    needs_root!();
    let folder = Folder::new();
    let words = begun_in_time(&workload());
    for tracer in ["bpf", "bpf-syscalls", "tracefs", "perf"] {
        hears_all(tracer, folder.0.path(), &words, || {
            let mut record = folder.onbeat();
            record.args(["record", "--tracer", tracer]);
            record
        });
    }
}

#[test]
fn an_ordinary_user_hears_all_that_a_program_does_by_perf() {
    needs_root!();
    let folder = tempfile::tempdir().unwrap();
    let copy = |program: &Path, name| {
        let path = folder.path().join(name);
        copy_program(program, &path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let onbeat = copy(Path::new(env!("CARGO_BIN_EXE_onbeat")), "onbeat");
    let workload = copy(&workload(), "workload");
    let begun = begun_in_time(Path::new("setpriv"));
    let as_nobody = || {
        let mut command = Command::new(&begun[0]);
        command
            .args(&begun[1..])
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(&onbeat);
        command
    };
    let refused = |tracer: &str, remedy: &str| {
        let output = as_nobody()
            .args(["record", "--tracer", tracer, "-o", "/dev/null"])
            .args(["--", "true"])
            .output()
            .expect("onbeat starts");
        assert_eq!(output.status.code(), Some(1), "{tracer}");
        assert!(stderr(&output).contains(remedy), "{}", stderr(&output));
    };
    // He may do it exactly where the administrator lets him.
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if level.trim().parse::<i32>().unwrap() <= 2 {
        hears_all("perf", folder.path(), &[workload.clone().into()], || {
            let mut record = as_nobody();
            record.args(["record", "--tracer", "perf"]);
            record
        });
    } else {
        refused("perf", "perf_event_paranoid=2");
    }
    refused("tracefs", "run it with sudo");
}

#[test]
fn a_program_is_kept_on_the_beat_by_each_tracer() {
    needs_root!();
    for tracer in ["bpf", "tracefs", "ptrace"] {
        let folder = Folder::new();
        let mut run = folder.keep("run");
        run.args(["--tracer", tracer, "--"])
            .args(begun_in_time(&workload()))
            .arg("beat:50000/4000");
        let mut onbeat = Mortal::spawn(&mut run);
        eventually("a reservation", || {
            let log = folder.log();
            log.into_iter().find(|entry| entry["what"] == "reserved")
        });
        onbeat.signal(libc::SIGTERM);
        assert_eq!(onbeat.status(), Some(128 + libc::SIGTERM), "{tracer:?}");
        assert_eq!(folder.state_files(), 0, "{tracer:?}");
        assert_eq!(folder.report()["lost_events"], 0, "{tracer:?}");
    }
}
