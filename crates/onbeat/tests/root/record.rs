//! `onbeat record`, then `onbeat analyze`: what a program did comes back out of the file.

use crate::*;

/// A prime number of activations, each one sleep: the main thread of `python3` beats 53 times.
const BEATS: usize = 53;
const BEAT: &str = "
import time
for _ in range(53):
    time.sleep(0.02)
";

fn events(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A folder, and a path in it.
fn file(name: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name).to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn every_activation_of_a_program_is_recorded_and_found_again_by_analyze() {
    let (folder, file) = file("beat.onbeat");
    // A sleep that is over before the thread has gone to sleep, because it lost the CPU on the way,
    // is none.
    let events = eventually("a run in which each sleep was one, and was heard", || {
        let words = ["record", "-o", &file, "--", "python3", "-c", BEAT];
        let output = ran(folder.path(), &words);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        has(stderr(&output), &[" 0 lost"]);

        let events = events(&file);
        assert_eq!(events[0]["format"], "onbeat-recording");
        assert_eq!(events[0]["command"][0], "python3");
        let of = |kind: &str| events.iter().filter(|e| e["event"] == kind).count();
        assert!(of("tracked") >= 1);
        assert_eq!(of("lost"), 0);
        (of("burst") > BEATS).then_some(events)
    });
    let output = ran(folder.path(), &["analyze", "--json", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let object: Value = serde_json::from_str(stdout(&output).lines().next().unwrap()).unwrap();
    assert_eq!(object["tid"], events[1]["tid"]);
    assert_eq!(object["comm"], "python3");
}

#[test]
fn a_recording_for_perfetto_is_read_by_analyze() {
    let (folder, file) = file("beat.pftrace");
    let record = ["record", "--format", "perfetto", "-o"];
    let beat = [&file, "--", "python3", "-c", BEAT];
    let output = ran(folder.path(), &[&record[..], &beat].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = ran(folder.path(), &["analyze", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // A stall can hide the rhythm, not the thread.
    has(stdout(&output), &[" python3 "]);
    let nowhere = ["/nowhere/x", "--", "true"];
    let failed = ran(folder.path(), &[&record[..], &nowhere].concat());
    assert_eq!(failed.status.code(), Some(1));
    has(stderr(&failed), &["cannot write the recording /nowhere/x"]);
}

#[test]
fn a_running_process_is_recorded_until_ctrl_c_and_the_file_is_whole() {
    let (folder, file) = file("running.onbeat.gz");
    let beats = "import time\nwhile True: time.sleep(0.01)";
    let beats = Mortal::spawn(Command::new("python3").args(["-c", beats]));
    let pid = beats.id().to_string();
    let mut record = started(folder.path(), &["record", "-q", "-o", &file, "-p", &pid]);
    // The file is made once the process is tracked.
    until("the recording", || Path::new(&file).exists());
    assert_eq!(record.ends(libc::SIGINT), Some(0));
    let check = Command::new("gzip").arg("-t").arg(&file).status().unwrap();
    assert!(check.success());
    let output = ran(folder.path(), &["analyze", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stderr(&output).contains("cut off"), "{}", stderr(&output));
}

#[test]
fn the_recording_ends_with_the_process_and_an_old_file_stays_if_there_is_nothing_to_record() {
    let (folder, file) = file("old.onbeat");
    fs::write(&file, "precious").unwrap();
    let output = ran(folder.path(), &["record", "-o", &file, "-p", "4194304"]);
    assert_eq!(output.status.code(), Some(1));
    has(stderr(&output), &["4194304"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");

    let beats = Mortal::spawn(Command::new("sleep").arg("1000"));
    let pid = beats.id().to_string();
    let mut record = started(folder.path(), &["record", "-q", "-o", &file, "-p", &pid]);
    until("the recording", || {
        fs::read_to_string(&file).is_ok_and(|text| text != "precious")
    });
    drop(beats);
    assert_eq!(record.status(), Some(0));
    assert!(events(&file).iter().any(|event| event["event"] == "exited"));
}
