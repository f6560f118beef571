//! The flags of `onbeat-lab plan`.

use std::path::PathBuf;

use clap::Args;
use onbeat_command::values;
use onbeat_model::Bandwidth;

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The recordings
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Share of its deadlines that each thread may miss; a higher one makes the reservations
    /// smaller
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = values::percent)]
    pub(crate) misses: Bandwidth,
    /// Template of Autoware's callback-isolated executors, to print with the reservations filled in
    /// instead of a table
    ///
    /// Threads are found by lines of prerun_node's log (`tid=NUMBER | ID`) in comments of the
    /// template, by the names of threads without a callback group, and by the periods of timers.
    #[arg(long, value_name = "TEMPLATE.yaml", conflicts_with = "json")]
    pub(crate) cie: Option<PathBuf>,
    /// Print one JSON object per thread and line instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}
