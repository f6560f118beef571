//! `onbeat record`, then `onbeat analyze`: what a program did comes back out of the file.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{Mortal, eventually, needs_root, onbeat, stderr, stdout};

/// A prime number of activations, each one sleep: the main thread of `python3` beats 53 times.
const BEATS: usize = 53;
const BEAT: &str = "
import time
for _ in range(53):
    time.sleep(0.02)
";

fn events(file: &Path) -> Vec<Value> {
    fs::read_to_string(file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn every_activation_of_a_program_is_recorded_and_found_again_by_analyze() {
    needs_root!();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("beat.onbeat");
    // A sleep that is over before the thread has gone to sleep, because it lost the CPU on the way,
    // is none.
    let events = eventually("a run in which each sleep was one, and was heard", || {
        let output = onbeat(folder.path())
            .args(["record", "-o"])
            .arg(&file)
            .args(["--", "python3", "-c", BEAT])
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains(" 0 lost"), "{}", stderr(&output));

        let events = events(&file);
        assert_eq!(events[0]["format"], "onbeat-recording");
        assert_eq!(events[0]["command"][0], "python3");
        let of = |kind: &str| events.iter().filter(|e| e["event"] == kind).count();
        assert!(of("tracked") >= 1);
        assert_eq!(of("lost"), 0);
        let bursts = of("burst");
        if bursts <= BEATS {
            println!("{bursts} bursts");
        }
        (bursts > BEATS).then_some(events)
    });

    let output = onbeat(folder.path())
        .args(["analyze", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let object: Value = serde_json::from_str(stdout(&output).lines().next().unwrap()).unwrap();
    assert_eq!(object["tid"], events[1]["tid"]);
    assert_eq!(object["comm"], "python3");
}

#[test]
fn a_recording_for_perfetto_is_read_by_analyze() {
    needs_root!();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("beat.pftrace");
    let output = onbeat(folder.path())
        .args(["record", "--format", "perfetto", "-o"])
        .arg(&file)
        .args(["--", "python3", "-c", BEAT])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = onbeat(folder.path()).arg("analyze").arg(&file).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // A stall can hide the rhythm, not the thread.
    assert!(stdout(&output).contains(" python3 "), "{}", stdout(&output));
    let failed = onbeat(folder.path())
        .args(["record", "--format", "perfetto", "-o", "/nowhere/x"])
        .args(["--", "true"])
        .output()
        .unwrap();
    assert_eq!(failed.status.code(), Some(1));
    assert!(stderr(&failed).contains("cannot write the recording /nowhere/x"));
}

#[test]
fn a_running_process_is_recorded_until_ctrl_c_and_the_file_is_whole() {
    needs_root!();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("running.onbeat.gz");
    let beats = Mortal::spawn(
        Command::new("python3").args(["-c", "import time\nwhile True: time.sleep(0.01)"]),
    );
    let mut record = Mortal::spawn(
        onbeat(folder.path())
            .args(["record", "--quiet", "-o"])
            .arg(&file)
            .args(["-p", &beats.id().to_string()]),
    );
    // The file is made once the process is tracked.
    eventually("the recording", || fs::metadata(&file).ok());
    record.signal(libc::SIGINT);
    assert_eq!(record.status(), Some(0));
    let check = Command::new("gzip").arg("-t").arg(&file).status().unwrap();
    assert!(check.success());
    let output = onbeat(folder.path())
        .arg("analyze")
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stderr(&output).contains("cut off"), "{}", stderr(&output));
}

#[test]
fn the_recording_ends_with_the_process_and_an_old_file_stays_if_there_is_nothing_to_record() {
    needs_root!();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old.onbeat");
    fs::write(&file, "precious").unwrap();
    let output = onbeat(folder.path())
        .args(["record", "-o"])
        .arg(&file)
        .args(["-p", "4194304"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("4194304"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");

    let mut beats = Mortal::spawn(Command::new("sleep").arg("1000"));
    let mut record = Mortal::spawn(
        onbeat(folder.path())
            .args(["record", "--quiet", "-o"])
            .arg(&file)
            .args(["-p", &beats.id().to_string()]),
    );
    eventually("the recording", || {
        (fs::read_to_string(&file).ok()? != "precious").then_some(())
    });
    beats.0.kill().unwrap();
    beats.0.wait().unwrap();
    assert_eq!(record.status(), Some(0));
    assert!(events(&file).iter().any(|event| event["event"] == "exited"));
}
