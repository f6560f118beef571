//! The choice of `--tracer`: each finds the period of a program, and keeps it on the beat.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::copied::copy_program;
use crate::in_time::in_time;
use crate::{Folder, Mortal, can_run, eventually, stderr, workload};

const BEAT: [&str; 3] = ["--jobs", "80", "beat:20000/500"];
const PERIOD_NS: f64 = 20e6;
/// How often a machine that stalls may hide the period.
const TRIES: usize = 30;

/// The words that begin `program` in time.
fn begun_in_time(program: &Path) -> Vec<OsString> {
    let first = in_time().iter().map(OsString::from);
    first.chain([program.into()]).collect()
}

/// Records the workload, these `words`, by `record`, which lacks file and program, until it is
/// found to have its period and jobs.
fn find(what: &str, folder: &Path, words: &[OsString], record: impl Fn() -> Command) {
    let file = folder.join("beat.onbeat");
    let mut seen = Vec::new();
    for _ in 0..TRIES {
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
        let analyze = Command::new(env!("CARGO_BIN_EXE_onbeat"))
            .args(["analyze", "--json"])
            .arg(&file)
            .output()
            .expect("onbeat starts");
        assert_eq!(analyze.status.code(), Some(0), "{}", stderr(&analyze));
        let lines = String::from_utf8_lossy(&analyze.stdout).into_owned();
        let threads = lines
            .lines()
            .map(|line| serde_json::from_str(line).expect("it is JSON"));
        // Each job is one stretch of work and one sleep, whatever else is heard of it.
        let is_right = |thread: &Value| {
            let period = thread["period_ns"].as_f64().unwrap_or(0.0);
            let jobs = thread["jobs"].as_u64().unwrap_or(0);
            (period / PERIOD_NS - 1.0).abs() < 0.01 && (70..=82).contains(&jobs)
        };
        let threads: Vec<Value> = threads.collect();
        if threads.iter().any(is_right) {
            return;
        }
        seen.push(threads);
    }
    panic!("{what}: the period was not found: {seen:?}");
}

#[test]
fn the_period_of_a_program_is_found_by_each_tracer() {
    if !can_run("the_period_of_a_program_is_found_by_each_tracer") {
        return;
    }
    let folder = Folder::new();
    let words = begun_in_time(&workload());
    for tracer in ["bpf", "bpf-syscalls", "tracefs", "perf"] {
        find(tracer, folder.0.path(), &words, || {
            let mut record = folder.onbeat();
            record.args(["record", "--tracer", tracer]);
            record
        });
    }
}

#[test]
fn an_ordinary_user_is_told_the_period_of_his_program_by_perf() {
    if !can_run("an_ordinary_user_is_told_the_period_of_his_program_by_perf") {
        return;
    }
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
        find(
            "the period",
            folder.path(),
            &[workload.clone().into()],
            || {
                let mut record = as_nobody();
                record.args(["record", "--tracer", "perf"]);
                record
            },
        );
    } else {
        refused("perf", "perf_event_paranoid=2");
    }
    refused("tracefs", "run it with sudo");
}

#[test]
fn a_program_is_kept_on_the_beat_by_each_tracer() {
    if !can_run("a_program_is_kept_on_the_beat_by_each_tracer") {
        return;
    }
    for tracer in ["tracefs", "ptrace"] {
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
