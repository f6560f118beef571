//! The onbeat binary, used as a user would: command line in, report out.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::Machine;

pub(crate) struct Onbeat {
    binary: PathBuf,
    report: PathBuf,
    log: PathBuf,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct ThreadFigures {
    pub(crate) tid: u32,
    pub(crate) comm: String,
    pub(crate) period_ns: u64,
    pub(crate) jobs: u64,
    /// Jobs that ended late, as seen from outside.
    pub(crate) missed: u64,
    /// From when it was first heard of to its first reservation.
    pub(crate) reserved_after_ns: Option<u64>,
    pub(crate) held_ns: u64,
    /// The share of a CPU that it used while reserved.
    pub(crate) bandwidth_used: f64,
    /// The share that was reserved for it meanwhile.
    pub(crate) bandwidth_reserved: f64,
    pub(crate) changes: u64,
    /// How often its budget ran out, as far as that was heard.
    pub(crate) exhaustions: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct OnbeatReport {
    threads: Vec<ThreadFigures>,
}

impl OnbeatReport {
    pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<ThreadFigures>> {
        let told = || {
            format!(
                "onbeat wrote no report to {}: its messages tell why",
                path.display()
            )
        };
        let file = File::open(path).with_context(told)?;
        let report: Self = serde_json::from_reader(file)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(report.threads)
    }
}

impl Onbeat {
    /// For the run `name` of an experiment: its report and log go among the figures.
    pub(crate) fn new(machine: &Machine, name: &str) -> anyhow::Result<Self> {
        Ok(Self {
            binary: binary()?,
            report: machine.file(&format!("{name}.report.json")),
            log: machine.file(&format!("{name}.log.jsonl")),
        })
    }

    /// `onbeat run --quiet OPTIONS -- PROGRAM`; the program's arguments can be added to it.
    pub(crate) fn run(
        &self,
        options: impl IntoIterator<Item = impl AsRef<OsStr>>,
        program: impl AsRef<OsStr>,
    ) -> Command {
        let mut command = Command::new(&self.binary);
        // The report of an earlier run must not be taken for this one's; it may not exist.
        let _ = fs::remove_file(&self.report);
        command
            .args(["run", "--quiet", "--report"])
            .arg(&self.report)
            .arg("--log")
            .arg(&self.log)
            .args(options)
            .arg("--")
            .arg(program);
        command
    }

    /// The file of its decisions.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    pub(crate) fn threads(&self) -> anyhow::Result<Vec<ThreadFigures>> {
        OnbeatReport::read(&self.report)
    }
}

/// The binary: where ONBEAT says, or the one beside this program.
pub(crate) fn binary() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("ONBEAT") {
        return Ok(path.into());
    }
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let beside = own.parent().unwrap_or(Path::new(".")).join("onbeat");
    if beside.is_file() {
        Ok(beside)
    } else {
        bail!(
            "there is no {}: build it with `cargo build --release -p onbeat`, or set ONBEAT",
            beside.display()
        )
    }
}
