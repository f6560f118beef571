//! The programs that are tracked: rt-apps of a hundred threads each, or four that do nothing but
//! what is measured.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use super::Args;
use crate::rt_app::{Calibration, RtApp, RtAppTask};
use crate::soak::which;

/// The threads of one program: rt-app crashes now and then when it starts several hundred on a busy
/// machine (its threads copy what the main thread is still moving).
const THREADS_OF_PROGRAM: u32 = 100;

const PERIODS: [(&str, u64); 4] = [
    ("p20", 20_000),
    ("p33", 33_333),
    ("p40", 40_000),
    ("p100", 100_000),
];

pub(super) struct Crowd {
    pub(super) threads: u32,
    pub(super) jobs_per_s: f64,
    programs: CrowdPrograms,
}

enum CrowdPrograms {
    RtApp(Vec<RtApp>),
    Plain(PlainCrowd),
}

/// This program under another name: a rule that finds it is not to find the one that measures.
struct PlainCrowd {
    executable: PathBuf,
    /// For as long as the crowd is there.
    _folder: tempfile::TempDir,
    periods_us: [u64; 4],
    threads_of_each: u32,
    run_us: u64,
    time: Duration,
}

impl Crowd {
    /// At least `threads` threads that run for `time`; of rt-app if it is calibrated.
    pub(super) fn new(
        args: &Args,
        threads: u32,
        calibration: Option<Calibration>,
        time: Duration,
    ) -> anyhow::Result<Self> {
        let periods = PERIODS.map(|(name, period)| (name, args.period.unwrap_or(period)));
        let periods_us = periods.map(|(_, period_us)| period_us);
        let (threads, programs) = if let Some(calibration) = calibration {
            let programs = threads.div_ceil(THREADS_OF_PROGRAM);
            let instances = threads.div_ceil(4 * programs);
            let tasks = periods.map(|(name, period_us)| RtAppTask {
                name,
                period_us,
                run_us: args.run,
                instances,
                reserved_us: None,
            });
            let rt_apps = (0..programs).map(|_| RtApp::new(&tasks, calibration, time));
            let rt_apps = rt_apps.collect::<anyhow::Result<_>>()?;
            (4 * instances * programs, CrowdPrograms::RtApp(rt_apps))
        } else {
            let folder = tempfile::tempdir().context("no temporary folder")?;
            let executable = folder.path().join("beats");
            let own = std::env::current_exe().context("cannot tell where this program is")?;
            fs::copy(own, &executable).context("cannot copy this program")?;
            let plain = PlainCrowd {
                executable,
                _folder: folder,
                periods_us,
                threads_of_each: threads.div_ceil(4),
                run_us: args.run,
                time,
            };
            (4 * plain.threads_of_each, CrowdPrograms::Plain(plain))
        };
        let jobs_of_each = periods_us.map(|us| f64::from(threads / 4) * 1e6 / us as f64);
        Ok(Self {
            threads,
            jobs_per_s: jobs_of_each.iter().sum(),
            programs,
        })
    }

    /// The file that all its processes execute.
    pub(super) fn executable(&self) -> anyhow::Result<String> {
        match &self.programs {
            CrowdPrograms::RtApp(_) => which("rt-app"),
            CrowdPrograms::Plain(plain) => Ok(plain.executable.display().to_string()),
        }
    }

    /// `shell` is to run all programs side by side.
    pub(super) fn command(&self, mut shell: Command) -> Command {
        match &self.programs {
            CrowdPrograms::RtApp(rt_apps) => {
                let script = r#"for file; do rt-app "$file" & done; wait"#;
                shell.args(["-c", script, "sh"]);
                shell.args(rt_apps.iter().map(RtApp::configuration));
            }
            CrowdPrograms::Plain(plain) => {
                let script = format!(
                    r#"for period; do "$0" beats --threads {} --run {} --seconds {} --period "$period" & done; wait"#,
                    plain.threads_of_each,
                    plain.run_us,
                    plain.time.as_secs()
                );
                shell.args(["-c", &script]).arg(&plain.executable);
                shell.args(plain.periods_us.map(|us| us.to_string()));
            }
        }
        shell.stdout(Stdio::null());
        shell
    }
}
