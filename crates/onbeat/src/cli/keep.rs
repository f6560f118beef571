//! The flags that `run` and `attach` share: how threads are kept on the beat.

use std::path::PathBuf;

use clap::Args;
use onbeat_model::Bandwidth;

use super::values::{self, PredictorName, Weight};

/// Where the state file lies unless told otherwise.
pub(super) const STATE_DIR: &str = "/run/onbeat";

/// How threads are kept on the beat.
#[derive(Debug, Args)]
pub(crate) struct KeepOptions {
    /// How a thread's next budget is predicted from its last jobs
    #[arg(long, value_enum, default_value_t, help_heading = "Prediction")]
    pub(crate) predictor: PredictorName,
    /// How many past jobs (or samples, for `rate`) the prediction looks at
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Prediction",
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) samples: u32,
    /// The share of those that must have fitted into the budget (`percentile` and `rate`)
    #[arg(long, value_name = "P", default_value_t = 0.9375, help_heading = "Prediction",
          value_parser = values::fraction)]
    pub(crate) quantile: f64,
    /// How much is added on top of what is predicted, as a share of it
    #[arg(long, value_name = "X", default_value_t = 0.15, help_heading = "Prediction",
          value_parser = values::not_negative)]
    pub(crate) spread: f64,
    /// Standard deviations added to the mean (`mean-sigma`)
    #[arg(long, value_name = "K", default_value_t = 3.0, help_heading = "Prediction",
          value_parser = values::not_negative)]
    pub(crate) sigmas: f64,
    /// The sampling period in jobs (`rate` and `binary`)
    #[arg(long, value_name = "JOBS", default_value_t = 1, help_heading = "Prediction",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) sampling: u32,

    /// The most that all reservations together may take, in per cent of all CPUs
    #[arg(long, value_name = "PERCENT", default_value = "85%", help_heading = "Limits",
          value_parser = values::percent)]
    pub(crate) cap: Bandwidth,
    /// The most that one thread may take, in per cent of one CPU
    #[arg(long, value_name = "PERCENT", default_value = "85%", help_heading = "Limits",
          value_parser = values::percent)]
    pub(crate) task_cap: Bandwidth,
    /// What each periodic thread gets even if not everything fits, in per cent of one CPU
    #[arg(long, value_name = "PERCENT", default_value = "1%", help_heading = "Limits",
          value_parser = values::percent)]
    pub(crate) minimum: Bandwidth,
    /// How much a thread counts when not everything fits; others count 1
    ///
    /// NAME is a thread's name or number. May be given several times.
    #[arg(long = "weight", value_name = "NAME=WEIGHT", help_heading = "Limits")]
    pub(crate) weights: Vec<Weight>,
    /// Let threads use bandwidth that other reservations leave (GRUB)
    #[arg(long, help_heading = "Limits")]
    pub(crate) reclaim: bool,

    /// Keep this running process on the beat, too; may be given several times
    #[arg(long, value_name = "PID", help_heading = "Whom")]
    pub(crate) also: Vec<u32>,
    /// Keep the processes that the program starts on the beat, too
    #[arg(long, help_heading = "Whom")]
    pub(crate) children: bool,

    /// Decide and log, but change nothing
    #[arg(short = 'n', long, help_heading = "Output")]
    pub(crate) dry_run: bool,
    /// Write the closing figures to this file, as one JSON object
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    /// Write every decision and its reason to this file, one JSON object per line
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) log: Option<PathBuf>,
    /// No messages and no closing table
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Where it is noted what has to be put back
    #[arg(long, value_name = "DIR", env = "ONBEAT_STATE_DIR", default_value = STATE_DIR,
          help_heading = "Output")]
    pub(crate) state_dir: PathBuf,
}
