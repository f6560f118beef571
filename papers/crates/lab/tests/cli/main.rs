//! The command line as a person and a script meet it; and what it prints for others, as root.

#[allow(dead_code)]
#[path = "../../../../../crates/onbeat/tests/common/mod.rs"]
mod common;
#[path = "../../../../../crates/onbeat/tests/documented/mod.rs"]
mod documented;
mod formats;
mod plan;
mod planned;
mod scheduler;
mod sim;
#[path = "../../../../../crates/onbeat/tests/common/skip.rs"]
mod skip;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

/// How long something that must come may take on a stalled machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs onbeat-lab to its end.
fn lab<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onbeat-lab"))
        .args(args)
        .output()
        .expect("onbeat-lab was built by this test run")
}

/// The output, which must be text.
fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("results are text")
}

/// Its messages.
fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("messages are text")
}

/// A file of the checkout.
fn checkout(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(path)
}

/// The kernel's number of the policy that `tid` has now: 0 SCHED_OTHER, 6 SCHED_DEADLINE.
fn policy(tid: u32) -> i32 {
    const RESET_ON_FORK: i32 = 0x4000_0000;
    // SAFETY: takes a number; -1 if there is no such thread.
    let policy = unsafe { libc::sched_getscheduler(tid.cast_signed()) };
    if policy < 0 {
        policy
    } else {
        policy & !RESET_ON_FORK
    }
}

const DEADLINE: i32 = 6;
