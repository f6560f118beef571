//! The helpers of the tests on a live kernel: whether they can run, waiting for what must come, and
//! programs that do not outlive their test. How patient they are, each test binary says itself.

use std::fs;
use std::process::{Child, Command};
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

/// Waits until `condition` gives something.
pub(crate) fn eventually<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, condition)
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

/// The field `name` of the process's status.
#[allow(dead_code, reason = "not in each test binary that has this")]
pub(crate) fn status_field(pid: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"))?;
    Some(field.to_owned())
}

/// The two processes without rights that parse files for the process `pid`, its child and that
/// one's, once both have given up their rights.
#[allow(dead_code, reason = "not in each test binary that has this")]
pub(crate) fn parsers_of(pid: u32) -> (u32, u32) {
    let children = |pid: u32| -> Vec<u32> {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        children.split_whitespace().flat_map(str::parse).collect()
    };
    let (supervisor, worker) = eventually("a process with a filter of system calls", || {
        let pairs = children(pid).into_iter().flat_map(|supervisor| {
            let workers = children(supervisor).into_iter();
            workers.map(move |worker| (supervisor, worker))
        });
        let is_confined = |pid| status_field(pid, "Seccomp").as_deref() == Some("2");
        pairs.into_iter().find(|(_, worker)| is_confined(*worker))
    });
    for process in [supervisor, worker] {
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            let held = status_field(process, set);
            assert_eq!(held.as_deref(), Some("0000000000000000"));
        }
        assert_eq!(status_field(process, "NoNewPrivs").as_deref(), Some("1"));
        for number in ["Uid", "Gid"] {
            let nobody = "65534\t65534\t65534\t65534";
            assert_eq!(status_field(process, number).as_deref(), Some(nobody));
        }
    }
    (supervisor, worker)
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

    /// Its exit status, when it has ended.
    pub(crate) fn status(&mut self) -> Option<i32> {
        eventually("the end of the program", || {
            self.0.try_wait().expect("it is our child")
        })
        .code()
    }

    /// Kills an onbeat and its guard, so that no process puts back what it has changed.
    #[allow(dead_code, reason = "not in each test binary that has this")]
    pub(crate) fn kill_with_guard(self) {
        // SAFETY: plain system calls about a child of our child, which that one does not wait for.
        unsafe {
            for guard in guards(self.id()) {
                libc::kill(guard.cast_signed(), libc::SIGKILL);
            }
        }
    }
}

/// The guards that the process `onbeat` has started.
fn guards(onbeat: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{onbeat}/task/{onbeat}/children"));
    let children = children.unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|child| child.parse().ok());
    let is_guard = |child: &u32| {
        let arguments = fs::read(format!("/proc/{child}/cmdline"));
        arguments.is_ok_and(|arguments| arguments.starts_with(b"onbeat-guard\0"))
    };
    children.filter(is_guard).collect()
}

impl Drop for Mortal {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
