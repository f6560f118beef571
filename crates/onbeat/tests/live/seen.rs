//! What programs see of onbeat, and whom it leaves alone.

use crate::*;

#[test]
fn init_and_the_kernels_threads_are_not_attached_to_and_the_reason_is_told() {
    for (pid, reason) in [("1", "is init"), ("2", "a thread of the kernel")] {
        let before = scheduling(pid.parse().unwrap());
        for args in [&["attach"][..], &["run", "--also"]] {
            let folder = Folder::new();
            let mut onbeat = folder.keep(args[0]);
            onbeat.args(&args[1..]).arg(pid);
            if args[0] == "run" {
                onbeat.args(["--", "true"]);
            }
            let output = onbeat.output().unwrap();
            has(stderr(&output), &[reason]);
            assert!(!output.status.success());
        }
        assert_eq!(scheduling(pid.parse().unwrap()), before);
    }
}

/// Computes 1 ms in each 10 ms, and yields in between.
const YIELDS: &str = "
import os, time
due = time.monotonic()
while True:
    due += 0.01
    time.sleep(max(0, due - time.monotonic()))
    end = time.thread_time() + 0.001
    while time.thread_time() < end:
        os.sched_yield()
";

#[test]
fn a_thread_that_yields_loses_its_reservation_for_good_and_the_reason_is_told() {
    let folder = Folder::new();
    let mut run = folder.keep("run");
    let mut onbeat = Mortal::spawn(run.args(["--", "python3", "-c", YIELDS]));
    // After that, nothing is said of another one.
    let after_release = || {
        let log = folder.log();
        let tells = |entry: &Value| entry["why"].to_string().contains("sched_yield()");
        let released = log.iter().position(tells)?;
        let after = log[released..].iter().map(|entry| entry["what"].clone());
        Some(after.collect::<Vec<_>>())
    };
    eventually("its release", after_release);
    // Time enough for it to be reserved again.
    std::thread::sleep(Duration::from_secs(2));
    let after = after_release().unwrap();
    assert_eq!(after[0], "released");
    assert!(!after.iter().any(|what| what == "reserved"), "{after:?}");
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(128 + libc::SIGTERM));
}
