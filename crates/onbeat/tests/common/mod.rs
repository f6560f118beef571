//! What the tests on a live kernel share: whether they can run, waiting for what must come, and
//! programs that do not outlive their test. How patient they are, each test binary says itself.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// True if this test can run; says why not otherwise. In CI that is a failure.
pub(crate) fn can_run(test: &str) -> bool {
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
pub(crate) fn onbeat(state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    command.env("ONBEAT_STATE_DIR", state).stdin(Stdio::null());
    command
}

/// How many state files there are in `directory`.
pub(crate) fn state_files(directory: &Path) -> usize {
    std::fs::read_dir(directory).map_or(0, |entries| entries.count())
}

/// Waits until `condition` gives something.
pub(crate) fn eventually<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, condition)
}

/// Waits for so long until `condition` gives something.
pub(crate) fn within<T>(
    patience: Duration,
    what: &str,
    mut condition: impl FnMut() -> Option<T>,
) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(began.elapsed() < patience, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A child that does not outlive its test, even if that fails.
pub(crate) struct Mortal(pub(crate) Child);

impl Mortal {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().expect("the program is there"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
