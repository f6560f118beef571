//! The flags of `onbeat-lab sim`: files to simulate, or recordings to play under other policies.

use std::path::PathBuf;

use clap::Args;
use onbeat_model::Bandwidth;
use onbeat_sim::comparison::{ComparedPolicy, OverrunRule};

use onbeat_command::values;

use super::ConfigOption;
use super::seeds::Seeds;

/// The flags for recordings; a file to simulate has these settings in itself.
const WHAT_IF: [&str; 10] = [
    "from",
    "policies",
    "cpus",
    "speeds",
    "hogs",
    "misses",
    "overrun",
    "fixed_power",
    "idle_power",
    "sources",
];

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// The machine, its tasks and the duration, in TOML
    #[arg(required_unless_present = "from", conflicts_with_all = WHAT_IF, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) comparison: ComparisonOptions,
    /// Seed for each file, or a range such as 1-100 [default: the file's own]; each seed is one run
    #[arg(long, value_name = "SEEDS", conflicts_with = "from")]
    pub(crate) seed: Option<Seeds>,
    /// Print one JSON object per run and line instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// File for the jobs of a single run, as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) jobs: Option<PathBuf>,
    /// File for a timeline of a single run, for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// No progress line
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ComparisonOptions {
    /// Recording whose threads to play under other policies and on other machines; may be given
    /// several times
    ///
    /// Any recording that `analyze` reads and that has the threads' CPU time, or a .csv with a
    /// heading and the columns release_ns and demand_ns (and task). Several recordings run side by
    /// side.
    #[arg(long, value_name = "RECORDING", help_heading = "What if")]
    pub(crate) from: Vec<PathBuf>,
    /// Policies to compare, such as fair,plan [default: all]
    #[arg(
        long = "policy",
        value_enum,
        value_name = "POLICY",
        value_delimiter = ',',
        help_heading = "What if"
    )]
    pub(crate) policies: Vec<ComparedPolicy>,
    /// Number of CPUs, such as 1,2,4 [default: that of the recorded machine, or of this one]
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = "What if",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) cpus: Vec<u16>,
    /// Speed of the CPUs, in % of the recorded machine's, such as 50%,100%
    #[arg(long = "speed", value_name = "SHARE", value_delimiter = ',', default_value = "100%",
          help_heading = "What if", value_parser = values::percent)]
    pub(crate) speeds: Vec<Bandwidth>,
    /// Number of CPU-bound programs beside the threads
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "What if",
          value_parser = clap::value_parser!(u16).range(0..=4096))]
    pub(crate) hogs: u16,
    /// Share of its deadlines that each thread may miss; a higher one makes the reservations
    /// smaller (`plan`)
    #[arg(long, value_name = "SHARE", default_value = "1%", help_heading = "What if",
          value_parser = values::percent)]
    pub(crate) misses: Bandwidth,
    /// Rule for a thread that needs more than its reservation (`plan`, `statistical`)
    #[arg(long, value_enum, default_value_t, help_heading = "What if")]
    pub(crate) overrun: OverrunRule,
    /// Power of a busy CPU that does not depend on its speed, as a share of its full power
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "What if",
          value_parser = values::share)]
    pub(crate) fixed_power: f64,
    /// Power of an idle CPU, as a share of its full power
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "What if",
          value_parser = values::share)]
    pub(crate) idle_power: f64,
    #[command(flatten)]
    pub(crate) config: ConfigOption,
}
