//! The flags of the control loop, which `run`, `attach` and `top` share.

use std::path::PathBuf;

use clap::Args;
use onbeat_metrics::MetricsTarget;
use onbeat_model::Bandwidth;

use super::config::ConfigOption;
use super::tracing::LoopTracer;
use onbeat_command::values;

use super::values::Pipelines;

#[derive(Debug, Args)]
pub(crate) struct LoopFiles {
    /// File for figures, jobs and decisions at the end, as one JSON object for `onbeat report`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    /// File for a timeline of jobs, bursts, budgets and decisions, for ui.perfetto.dev
    ///
    /// It holds the last 8192 bursts of each thread, and is written at the end.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) perfetto: Option<PathBuf>,
    /// File for every decision and its reason, one JSON object per line
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) log: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct KeepOptions {
    #[command(flatten)]
    pub(crate) config: ConfigOption,

    /// Tracer that observes the program; `onbeat doctor` lists those that work here
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        default_value_t,
        help_heading = "Tracing"
    )]
    pub(crate) tracer: LoopTracer,

    /// Most CPU time that all served programs together have before others, in % of all CPUs
    /// [default: 85%]
    #[arg(long, value_name = "PERCENT", help_heading = "Limits", value_parser = values::percent)]
    pub(crate) cap: Option<Bandwidth>,
    /// Stop a thread that has used up its budget until its next period
    /// [default: a thread may also use CPU time that no reservation needs]
    ///
    /// LFS++'s setting. A job that needs more than its budget then waits for the next period, even
    /// if the CPU is idle: jobs are late if a period or a demand was inferred wrongly.
    #[arg(long, help_heading = "Limits")]
    pub(crate) hard: bool,

    /// A running process to serve, too; may be given several times
    #[arg(long, value_name = "PID", help_heading = "Targets")]
    pub(crate) also: Vec<u32>,
    /// Also serve the processes that the program starts
    #[arg(long, help_heading = "Targets")]
    pub(crate) children: bool,

    /// Whether to serve also threads of other programs that work for this one: display server,
    /// sound server, compositor
    ///
    /// onbeat finds the threads that work for each job by who wakes whom. Each gets the pipeline's
    /// period and a budget, as long as a thread with a reservation needs it. Works with the tracer
    /// bpf.
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        help_heading = "Targets"
    )]
    pub(crate) pipelines: Pipelines,

    /// Act also while no other program wants the CPUs
    ///
    /// LFS++'s setting. By default nothing is changed until a thread waits for a CPU that another
    /// program uses. The tracers other than bpf do not show that, and imply this.
    #[arg(long, help_heading = "Limits")]
    pub(crate) always: bool,

    /// Decide and log, but change nothing; without --always there is nothing to log
    #[arg(short = 'n', long, help_heading = "Output")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) files: LoopFiles,
    /// Metrics for Prometheus: an address on loopback, or a file (NAME.prom) for node_exporter
    /// [default: none]
    ///
    /// An address such as 127.0.0.1:9464 answers GET /metrics. A file is replaced every 5 s, and
    /// removed at the end.
    #[arg(long, value_name = "ADDR|FILE", help_heading = "Output")]
    pub(crate) metrics: Option<MetricsTarget>,
    /// Print no messages and no table at the end
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}
