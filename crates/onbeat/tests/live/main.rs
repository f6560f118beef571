//! `onbeat run` and `onbeat attach` on the live kernel, as root, on programs of our own.
//!
//! Only what must hold however the machine stalls is asserted: states, counts, identities; and what
//! must come in the end is waited for. Nothing depends on how long anything takes.

#[path = "../common/ahead.rs"]
mod ahead;
mod attacks;
mod boosts;
#[path = "../common/mod.rs"]
mod common;
#[path = "../compiled/mod.rs"]
mod compiled;
#[path = "../copied/mod.rs"]
mod copied;
mod crashes;
#[path = "../common/guard.rs"]
mod guard;
#[path = "../in_time/mod.rs"]
mod in_time;
mod keeping;
mod languages;
mod looking;
mod no_better;
#[path = "../own_state/mod.rs"]
mod own_state;
#[path = "../pair/mod.rs"]
mod pair;
mod paths;
mod programs;
#[path = "../common/root.rs"]
mod root;
mod seen;
#[path = "../common/tasks.rs"]
mod tasks;
mod telling;
#[path = "../terminal/mod.rs"]
mod terminal;
#[path = "../common/text.rs"]
mod text;
mod tracers;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Mortal, eventually, until, within};
use onbeat_act::attributes::Attributes;
use own_state::{onbeat, state_files};
use serde_json::Value;
use tasks::{is_reserved, reserved_thread, tids};
use text::{has, stderr, stdout};

/// How long something that must come may take on a stalled machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Options with which nothing but reservations is given.
const RESERVES: [&str; 2] = ["--config", r#"enforcement.means="reservations""#];

/// The traces of a test: onbeat's state, its log and its report.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn state(&self) -> PathBuf {
        self.path("state")
    }

    fn state_files(&self) -> usize {
        state_files(&self.state())
    }

    /// onbeat with this folder, and the options that make it log and report to it.
    fn keep(&self, command: &str) -> Command {
        let mut onbeat = self.onbeat();
        onbeat
            .args([command, "--always", "--log"])
            .arg(self.path("log"))
            .arg("--report")
            .arg(self.path("report"));
        onbeat
    }

    fn onbeat(&self) -> Command {
        onbeat(&self.state())
    }

    /// `onbeat attach` to this process, with these options.
    fn attach(&self, pid: u32, options: &[&str]) -> Mortal {
        let mut attach = self.keep("attach");
        Mortal::spawn(attach.args(options).arg(pid.to_string()))
    }

    /// The first entry of the log that is so.
    fn entry(&self, is_so: impl Fn(&Value) -> bool) -> Option<Value> {
        self.log().into_iter().find(is_so)
    }

    /// The first entry of the log that says this.
    fn says(&self, what: &str) -> Value {
        eventually(what, || self.entry(|entry| entry["what"] == what))
    }

    /// The journal's complete lines so far.
    fn log(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        let lines = log
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn report(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.path("report")).unwrap()).unwrap()
    }
}

/// The example that this package builds with its tests.
fn workload() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let target = own.parent().and_then(Path::parent);
    target.unwrap().join("examples/workload")
}

/// A running workload with these threads.
fn working(threads: &[&str]) -> Mortal {
    let workload = Mortal::spawn(Command::new(workload()).args(threads).stdout(Stdio::null()));
    until("the workload's threads", || {
        tids(workload.id()).len() > threads.len()
    });
    workload
}

/// The present scheduling of each thread of a process.
fn scheduling(pid: u32) -> Vec<(u32, Attributes)> {
    tids(pid)
        .into_iter()
        .map(|tid| (tid, Attributes::get(tid).expect("the thread lives")))
        .collect()
}
