//! The flags of `onbeat replay`.

use std::path::PathBuf;

use clap::Args;

use super::prediction::PredictionOptions;
use super::values::Method;

/// `onbeat replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The recording
    #[arg(value_name = "RECORDING")]
    pub(crate) file: PathBuf,
    /// Decide only for this process of the recording, with its threads; may be given several times
    ///
    /// Without this, for every thread of the recording.
    #[arg(short, long = "pid", value_name = "PID", help_heading = "Whom")]
    pub(crate) pids: Vec<u32>,
    /// Those that descend from it, too, as far as the recording tells
    #[arg(long, requires = "pids", help_heading = "Whom")]
    pub(crate) children: bool,
    /// On a machine with so many CPUs; as many as the recorded machine had, or this one, if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) cpus: Option<u32>,
    /// How periods are found
    #[arg(long, value_enum, default_value_t, help_heading = "Prediction")]
    pub(crate) analyser: Method,
    /// How budgets are predicted.
    #[command(flatten)]
    pub(crate) prediction: PredictionOptions,
    /// One JSON object per decision and line, as --log has them, instead of tables
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Write figures, jobs and decisions to this file, as one JSON object, for `onbeat report`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    /// Write a timeline of jobs, bursts, budgets and decisions to this file, for ui.perfetto.dev
    ///
    /// Of each thread the last 8192 bursts.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Write every decision and its reason to this file, one JSON object per line
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) log: Option<PathBuf>,
}
