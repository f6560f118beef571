//! `onbeat top`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgGroup, Args};

use super::KeepOptions;

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("whom").args(["pids", "command"]).multiple(true)),
    mut_args(needs_whom)
)]
pub(crate) struct TopArgs {
    /// A running process to reserve for and show; may be given several times
    #[arg(short, long = "pid", value_name = "PID", conflicts_with = "command")]
    pub(crate) pids: Vec<u32>,
    /// Past run to show: a file that `run --report` wrote
    #[arg(long, value_name = "RUN.json", conflicts_with = "whom")]
    pub(crate) from: Option<PathBuf>,
    /// Print one table and exit
    #[arg(long, conflicts_with = "whom")]
    pub(crate) once: bool,
    /// Print one JSON object per line and thread, and exit
    #[arg(long, conflicts_with = "whom")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) keep: KeepOptions,
    /// The program to start, reserve for and show, and its arguments; its output is not shown
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// The control loop's flags need a process or a program: the service has its own configuration.
fn needs_whom(flag: Arg) -> Arg {
    match flag.get_id().as_str() {
        "pids" | "command" | "from" | "once" | "json" => flag,
        _ => flag.requires("whom"),
    }
}
