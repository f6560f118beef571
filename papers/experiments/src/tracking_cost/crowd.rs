//! The programs that are tracked: four that do nothing but what is measured.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use super::Args;

const PERIODS_US: [u64; 4] = [20_000, 33_333, 40_000, 100_000];

/// This program under another name: a rule that finds it is not to find the one that measures.
pub(super) struct Crowd {
    pub(super) threads: u32,
    pub(super) jobs_per_s: f64,
    executable: PathBuf,
    _folder: tempfile::TempDir,
    periods_us: [u64; 4],
    run_us: u64,
    time: Duration,
}

impl Crowd {
    /// At least `threads` threads that run for `time`.
    pub(super) fn new(args: &Args, threads: u32, time: Duration) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let executable = folder.path().join("beats");
        let own = std::env::current_exe().context("cannot tell where this program is")?;
        fs::copy(own, &executable).context("cannot copy this program")?;
        let periods_us = PERIODS_US.map(|period| args.period.unwrap_or(period));
        let of_each = threads.div_ceil(4);
        let jobs = periods_us.map(|us| f64::from(of_each) * 1e6 / us as f64);
        Ok(Self {
            threads: 4 * of_each,
            jobs_per_s: jobs.iter().sum(),
            executable,
            _folder: folder,
            periods_us,
            run_us: args.run,
            time,
        })
    }

    /// The file that all its processes execute.
    pub(super) fn executable(&self) -> String {
        self.executable.display().to_string()
    }

    /// `shell` is to run all programs side by side.
    pub(super) fn command(&self, mut shell: Command) -> Command {
        let script = format!(
            r#"for period; do "$0" beats --threads {} --run {} --seconds {} --period "$period" & done; wait"#,
            self.threads / 4,
            self.run_us,
            self.time.as_secs()
        );
        shell.args(["-c", &script]).arg(&self.executable);
        shell.args(self.periods_us.map(|us| us.to_string()));
        shell.stdout(Stdio::null());
        shell
    }
}
