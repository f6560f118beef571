//! The helpers of the tests on a live kernel: waiting for what must come, and programs that do not
//! outlive their test. How patient they are, each test binary says itself.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// Waits until `condition` gives something.
pub(crate) fn eventually<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, condition)
}

/// Waits until this is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    eventually(what, || is_so().then_some(()));
}

/// Waits for this time until `condition` gives something.
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

    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: a plain system call about our own child, which was not waited for yet.
        unsafe { libc::kill(self.id().cast_signed(), signal) };
    }

    /// Its exit status after this signal.
    pub(crate) fn ends(&mut self, signal: i32) -> Option<i32> {
        self.signal(signal);
        self.status()
    }

    /// Its exit status, when it has ended.
    pub(crate) fn status(&mut self) -> Option<i32> {
        eventually("the end of the program", || {
            self.0.try_wait().expect("it is our child")
        })
        .code()
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
