//! Every command and flag, defined once: help, man pages and completions are made from this.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use onbeat_command::state::StateDirectory;
use onbeat_command::values::positive_span;
use onbeat_model::{Reservation, Span};

mod config;
/// Pages, and folders of pages, whose command lines, flags and links are true; in the checkout.
#[cfg(test)]
const DOCUMENTS: [&str; 4] = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "docs"];
#[cfg(test)]
const CHECKOUT: &str = "../..";
mod keep;
mod replay;
mod service;
#[cfg(test)]
mod tests;
mod top;
mod tracing;
mod values;

pub(crate) use config::ConfigOption;
pub(crate) use keep::{KeepOptions, LoopFiles};
pub(crate) use replay::ReplayArgs;
pub(crate) use service::ServiceOption;
pub(crate) use top::TopArgs;
pub(crate) use tracing::TracingOptions;
pub(crate) use values::{MeansChoice, Pipelines, band};

/// Keeps CPU time for programs with deadlines on a busy machine.
///
/// onbeat watches an unmodified program through the kernel, finds the period of each of its threads
/// and the CPU time that the program takes. While it waits for CPUs that other programs use, its
/// threads go before these, up to a limit: with a period what it used of late and a quarter more,
/// without one 0.8 s of CPU time for each process, then 5% of a CPU. With --always or --hard, each
/// thread with a period has a reservation just large enough: a budget of CPU time in each period,
/// which the kernel guarantees (SCHED_DEADLINE). At the end every thread gets back what it had.
#[derive(Debug, Parser)]
#[command(
    name = "onbeat",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a program and keep CPU time for it
    ///
    /// Ends when the program ends, with its exit status, and prints a table of its threads. With
    /// root's rights (or CAP_SYS_NICE, CAP_BPF and CAP_PERFMON) onbeat acts itself, otherwise it
    /// asks the system service.
    Run(RunArgs),
    /// Keep CPU time for running processes
    ///
    /// Ends when they have all ended, or on Ctrl-C; every changed thread then gets back what it
    /// had. With root's rights (or CAP_SYS_NICE, CAP_BPF and CAP_PERFMON) onbeat acts itself,
    /// otherwise it asks the system service.
    Attach(AttachArgs),
    /// Show each thread live: period, use, reservation, response times, and reasons
    ///
    /// Shows what the service does for your threads (for root: for all). With --pid or a program it
    /// reserves itself, as `attach` and `run` do, which needs root. With --from it shows a past
    /// run.
    Top(TopArgs),
    /// Serve ordinary users: reservations within quotas, over D-Bus
    ///
    /// The system service, which systemd starts: org.onbeat.Manager1 and
    /// org.freedesktop.RealtimeKit1 on the system bus (or the one that DBUS_SYSTEM_BUS_ADDRESS
    /// names). SIGTERM ends it; every changed thread then gets back what it had. Needs root, or
    /// CAP_SYS_NICE, CAP_BPF and CAP_PERFMON.
    Daemon(DaemonArgs),
    /// Record a program's threads, for `onbeat analyze`
    ///
    /// Changes nothing. Ends when the program ends, or on Ctrl-C. Needs the tracer's rights: root
    /// (or CAP_BPF and CAP_PERFMON) for `bpf`; see `onbeat doctor`.
    Record(RecordArgs),
    /// Measure a program of your own: periods, jobs, demands and response times
    ///
    /// Changes no scheduling and needs no privilege; some tracers slow the program down. Ends when
    /// the program ends, with its exit status. A response time lasts from a job's release (or its
    /// wakeup, if that came first) to the end of its last burst. Releases are inferred, so a
    /// program that is always late by the same time does not show it. Only the last 8192 bursts of
    /// each thread count.
    Watch(WatchArgs),
    /// Find the periods in a recording
    ///
    /// Reads onbeat's own recordings, Perfetto's, ftrace text (also of `trace-cmd report` and in
    /// systrace's HTML), `perf script` text, babeltrace2's text of LTTng's kernel traces, and CSV
    /// with a time in nanoseconds in its first column; each plain or .gz. Needs no privilege.
    Analyze(AnalyzeArgs),
    /// Start a program under a fixed reservation
    ///
    /// The program's first thread gets the reservation; its other threads and children do not
    /// inherit it. Ends with the program's exit status. With root's rights (or CAP_SYS_NICE) onbeat
    /// acts itself, otherwise it asks the system service.
    Reserve(ReserveArgs),
    /// Replay a recording through the loop and print its decisions
    ///
    /// Runs the loop of `run --dry-run` on the recording, in the recording's time, and prints each
    /// decision with its reason. The threads go on as they were recorded, whatever is decided.
    /// Needs no privilege.
    Replay(ReplayArgs),
    /// Make a page of a run: timelines, response times, budgets, spectra, decisions
    ///
    /// Reads a file that `run`, `attach`, `watch`, `replay` or `analyze` wrote with --report, and
    /// writes one HTML file that needs nothing else.
    Report(ReportArgs),
    /// A command of onbeat-lab, as are the next two
    #[command(hide = true, disable_help_flag = true)]
    Sim(LabArgs),
    #[command(hide = true, disable_help_flag = true)]
    Plan(LabArgs),
    #[command(hide = true, disable_help_flag = true)]
    Scheduler(LabArgs),
    /// Check this kernel and this user's rights, with advice for each missing feature
    Doctor(DoctorArgs),
    /// Restore the threads that a killed onbeat left changed
    Restore(RestoreArgs),
    /// Mark where a job of a shell script begins or ends, or that it missed a deadline
    ///
    /// The mark is that of the process that started this command, if it is the same user's. Nothing
    /// happens unless onbeat listens to it. Programs mark their jobs themselves: see docs/marks.md.
    Mark(MarkArgs),
    /// Write man pages or shell completions
    Generate(GenerateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) keep: KeepOptions,
    #[command(flatten)]
    pub(crate) service: ServiceOption,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub(crate) keep: KeepOptions,
    #[command(flatten)]
    pub(crate) service: ServiceOption,
    /// The processes, with all their threads
    #[arg(required = true, value_name = "PID", value_parser = values::process)]
    pub(crate) pids: Vec<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    /// The configuration [default: /etc/onbeat/onbeat.toml, if there is one]
    ///
    /// The service then reads NAME.d/*.toml beside it, in the order of their names.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Folder of the rules for well-known programs [default: share/onbeat/rules.d beside the folder
    /// of this binary]
    #[arg(long, value_name = "DIR")]
    pub(crate) rules: Option<PathBuf>,
    /// Check the configuration only: print the first mistake with its line
    #[arg(long)]
    pub(crate) check: bool,
    /// Metrics for Prometheus: an address on loopback, or a file (NAME.prom) for node_exporter
    /// [default: none]
    ///
    /// An address such as 127.0.0.1:9464 answers GET /metrics. A file is replaced every 5 s, and
    /// removed at the end.
    #[arg(long, value_name = "ADDR|FILE")]
    pub(crate) metrics: Option<onbeat_metrics::MetricsTarget>,
    /// Serve rules alone, without D-Bus: for a container that has no bus
    #[arg(long)]
    pub(crate) no_bus: bool,
    /// At the end, leave clients of RealtimeKit their priorities, for the next service to take over
    ///
    /// `onbeat restore` takes them back. The unit of systemd does that when it is stopped for good.
    #[arg(long)]
    pub(crate) hand_over: bool,
    #[command(flatten)]
    pub(crate) state: StateDirectory,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("whom").required(true).args(["pids", "command"])))]
pub(crate) struct RecordArgs {
    /// The recording to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// The format
    #[arg(long, value_enum, default_value_t = RecordFormat::Onbeat)]
    pub(crate) format: RecordFormat,
    /// A running process to record, with all its threads; may be given several times
    #[arg(short, long = "pid", value_name = "PID")]
    pub(crate) pids: Vec<u32>,
    /// Also record the processes that the program starts
    #[arg(long)]
    pub(crate) children: bool,
    #[command(flatten)]
    pub(crate) tracing: TracingOptions,
    /// Record every wakeup, not only bursts
    ///
    /// A burst's own wakeup is always recorded. This adds the wakeups of threads that were already
    /// awake, and makes the recording larger.
    #[arg(long)]
    pub(crate) wakeups: bool,
    /// Time after which to stop, such as 10s [default: none]; a program that onbeat started then
    /// gets SIGTERM
    #[arg(long, value_name = "TIME", value_parser = positive_span)]
    pub(crate) duration: Option<Span>,
    /// No progress line
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program to start and record, and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum RecordFormat {
    /// onbeat's own, with all that it knows
    Onbeat,
    /// The kernel's scheduling events, as Perfetto has them: threads, bursts and wakeups
    Perfetto,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) tracing: TracingOptions,
    /// Also measure the processes that the program starts
    #[arg(long)]
    pub(crate) children: bool,
    /// Print one JSON object per thread and line instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) files: HistoryFiles,
    /// No table and no progress line
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryFiles {
    /// File for the threads' figures and jobs, as one JSON object for `onbeat report`
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// File for a timeline of jobs and bursts, for ui.perfetto.dev
    ///
    /// It holds the last 8192 bursts of each thread.
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Length of the windows that are analysed one by one, such as 1s
    /// [default: the whole recording]
    ///
    /// Windows start at the recording's first event. In a longer window a period is surer, and a
    /// change of it is seen later.
    #[arg(long, value_name = "TIME", value_parser = positive_span)]
    pub(crate) window: Option<Span>,
    /// Print one JSON object per line, thread and window instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) files: HistoryFiles,
}

#[derive(Debug, Args)]
pub(crate) struct ReserveArgs {
    /// CPU time in each period, such as 5ms
    #[arg(long, value_name = "TIME")]
    runtime: Span,
    /// Time from one replenishment to the next, such as 20ms
    #[arg(long, value_name = "TIME")]
    period: Span,
    /// Time within which the runtime is given [default: the period]
    #[arg(long, value_name = "TIME")]
    deadline: Option<Span>,
    /// Make the reservation a ceiling, too
    /// [default: the program may also use CPU time that no reservation needs]
    #[arg(long)]
    pub(crate) hard: bool,
    #[command(flatten)]
    pub(crate) state: StateDirectory,
    #[command(flatten)]
    pub(crate) service: ServiceOption,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

impl ReserveArgs {
    pub(crate) fn reservation(&self) -> Result<Reservation, onbeat_model::ReservationError> {
        Reservation::new(
            self.runtime,
            self.deadline.unwrap_or(self.period),
            self.period,
        )
    }
}

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The file that --report wrote
    #[arg(value_name = "RUN.json")]
    pub(crate) file: PathBuf,
    /// The page to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MarkArgs {
    /// What to say
    pub(crate) what: MarkKind,
}

/// The marks of a script, with the numbers of `<onbeat/job.h>`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum MarkKind {
    /// A job begins
    Begin = 1,
    /// It has ended
    End = 2,
    /// A deadline was missed
    Missed = 3,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) state: StateDirectory,
    /// Also restore the threads of an onbeat that still runs
    #[arg(long)]
    pub(crate) force: bool,
    /// Print failures only
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// First wait for the end of the process whose pidfd is standard input
    #[arg(long, hide = true)]
    pub(crate) guard: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// The kind of files
    #[arg(value_enum)]
    pub(crate) what: Generated,
    /// The folder for the files; it is made if there is none
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Generated {
    /// One man page for onbeat, one for each command, and onbeat.toml's
    Man,
    /// Completions for bash, zsh, fish and elvish
    Completions,
}
