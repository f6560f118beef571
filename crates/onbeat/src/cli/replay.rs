//! The flags of `onbeat replay`.

use std::path::PathBuf;

use clap::Args;

use super::{ConfigOption, LoopFiles};

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The recording
    #[arg(value_name = "RECORDING")]
    pub(crate) file: PathBuf,
    /// One process of the recording, with its threads; may be given several times [default: all]
    #[arg(short, long = "pid", value_name = "PID", help_heading = "Targets")]
    pub(crate) pids: Vec<u32>,
    /// Also the processes that it started, as far as the recording tells
    #[arg(long, requires = "pids", help_heading = "Targets")]
    pub(crate) children: bool,
    /// The number of CPUs [default: that of the recorded machine if known, else of this one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) cpus: Option<u32>,
    #[command(flatten)]
    pub(crate) config: ConfigOption,
    /// One JSON object per decision and line, as --log has them, instead of tables
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) files: LoopFiles,
}
