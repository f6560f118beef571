//! Commands that need root and a live kernel, on short-lived programs of our own.
//!
//! Nothing here depends on how long anything takes: programs run until they are told to end, and
//! what must come is waited for.

#[path = "../documented/mod.rs"]
mod documented;
mod formats;
mod record;
mod reserve;
mod restore;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long something that must come may take on a stalled machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// True if this test can run; says why not otherwise. In CI that is a failure.
fn can_run(test: &str) -> bool {
    // SAFETY: geteuid takes nothing and always succeeds.
    if unsafe { libc::geteuid() } == 0 {
        return true;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "{test} needs root, in CI too"
    );
    println!("skipped: {test}: it needs root");
    false
}

/// onbeat with a state folder of its own, so that tests do not meet each other's files.
fn onbeat(state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    command.env("ONBEAT_STATE_DIR", state).stdin(Stdio::null());
    command
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("results are text")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("messages are text")
}

/// Waits until `condition` gives something.
fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(began.elapsed() < PATIENCE, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A child that does not outlive its test, even if that fails.
struct Mortal(Child);

impl Mortal {
    fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().expect("the program is there"))
    }

    fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The state files in `directory`.
fn state_files(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, |entries| entries.count())
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
