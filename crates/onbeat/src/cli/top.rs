//! `onbeat top`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgGroup, Args};

use super::KeepOptions;

/// `onbeat top`.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("whom").args(["pids", "command"]).multiple(true)),
    mut_args(needs_whom)
)]
pub(crate) struct TopArgs {
    /// Keep this running process on the beat, and look at it; may be given several times
    #[arg(short, long = "pid", value_name = "PID", conflicts_with = "command")]
    pub(crate) pids: Vec<u32>,
    /// Show a run again that is over, as `run --report` wrote it
    #[arg(long, value_name = "RUN.json", conflicts_with = "whom")]
    pub(crate) from: Option<PathBuf>,
    /// Print one table, and end
    #[arg(long, conflicts_with = "whom")]
    pub(crate) once: bool,
    /// Print one JSON object per line and thread, and end
    #[arg(long, conflicts_with = "whom")]
    pub(crate) json: bool,
    /// How they are kept on the beat.
    #[command(flatten)]
    pub(crate) keep: KeepOptions,
    /// The program to start, keep on the beat and look at, and its arguments; what it prints is not shown
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// How threads are kept is for whoever keeps some: the service has its own configuration.
fn needs_whom(flag: Arg) -> Arg {
    match flag.get_id().as_str() {
        "pids" | "command" | "from" | "once" | "json" => flag,
        // The environment may set it, for whatever command.
        _ if flag.get_env().is_some() => flag,
        _ => flag.requires("whom"),
    }
}
