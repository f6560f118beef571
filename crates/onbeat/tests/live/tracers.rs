//! The choice of `--tracer`: what an ordinary user hears; each keeps a program on the beat.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::copied::copy_program;
use crate::in_time::in_time;
use crate::*;

#[test]
fn an_ordinary_user_hears_all_that_a_program_does_by_perf() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let onbeat = Path::new(env!("CARGO_BIN_EXE_onbeat"));
    for (program, name) in [(onbeat, "onbeat"), (&workload(), "workload")] {
        copy_program(program, path(name));
        fs::set_permissions(path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let record = |tracer: &str, program: &[&str]| {
        let words = [in_time(), &["setpriv"]].concat();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(path("onbeat"))
            .args(["record", "--tracer", tracer, "-o"])
            .arg(path("beat.onbeat"))
            .arg("--")
            .args(program)
            .stdin(Stdio::null());
        command.output().unwrap()
    };
    let refused = |tracer: &str, remedy: &str| {
        let output = record(tracer, &["true"]);
        assert_eq!(output.status.code(), Some(1), "{tracer}");
        has(stderr(&output), &[remedy]);
    };
    refused("tracefs", "run it with sudo");
    // He may do it exactly where the administrator lets him.
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if level.trim().parse::<i32>().unwrap() > 2 {
        return refused("perf", "perf_event_paranoid=2");
    }
    let workload = path("workload");
    let beat = [workload.to_str().unwrap(), "--jobs", "80", "beat:20000/500"];
    let output = record("perf", &beat);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    has(stderr(&output), &[" 0 lost"]);
    // However the machine stalls, each job takes its CPU time by its own clock.
    let recording = fs::read_to_string(path("beat.onbeat")).unwrap();
    let events = recording
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let executed: u64 = events
        .filter_map(|event| event["executed_ns"].as_u64())
        .sum();
    assert!(executed >= 80 * 500_000, "{executed} ns");
}

#[test]
fn a_program_is_kept_on_the_beat_by_each_tracer() {
    for tracer in ["bpf", "tracefs", "ptrace"] {
        let folder = Folder::new();
        let mut run = folder.keep("run");
        run.args(["--tracer", tracer, "--"])
            .args(in_time().iter().map(OsString::from))
            .arg(workload())
            .arg("beat:50000/4000");
        let mut onbeat = Mortal::spawn(&mut run);
        folder.says("reserved");
        assert_eq!(
            onbeat.ends(libc::SIGTERM),
            Some(128 + libc::SIGTERM),
            "{tracer:?}"
        );
        assert_eq!(folder.state_files(), 0, "{tracer:?}");
        assert_eq!(folder.report()["lost_events"], 0, "{tracer:?}");
    }
}
