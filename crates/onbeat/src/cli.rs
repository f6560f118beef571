//! Every command and flag, defined once: help, man pages and completions are made from this.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use onbeat_model::{Bandwidth, Reservation, Span};
use onbeat_schedulers::reserve::{Budget, NoBudget};

#[cfg(test)]
mod documented;
mod keep;
mod prediction;
mod scheduler;
mod service;
mod sim;
mod state;
mod top;
mod tracing;
mod values;

pub(crate) use keep::KeepOptions;
pub(crate) use scheduler::{PlanOption, SchedulerArgs, SchedulerCommand, StartArgs};
pub(crate) use service::ServiceOption;
pub(crate) use sim::{ComparisonOptions, Policy, SimArgs};
pub(crate) use state::StateDirectory;
pub(crate) use top::TopArgs;
pub(crate) use tracing::TracingOptions;
pub(crate) use values::{Method, Pipelines, Through, Weight};

/// Keeps programs with deadlines on the beat on a busy machine.
///
/// onbeat watches an unmodified program through the kernel, finds the period at which each of its
/// threads works and how much CPU time each job takes, and keeps a SCHED_DEADLINE reservation just
/// large enough around each of them. Threads without a clear period run at nice -20 while their program
/// begins or keeps a beat, and are left alone otherwise. Everything changed is put back at the end.
#[derive(Debug, Parser)]
#[command(
    name = "onbeat",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a program and keep it on the beat
    ///
    /// Ends when the program ends, with its exit status, and prints what was seen and done for each
    /// thread. With root's rights (or CAP_SYS_NICE, CAP_BPF and CAP_PERFMON) by itself, else by the system service.
    Run(RunArgs),
    /// Keep running processes on the beat
    ///
    /// Ends when they have all ended, or on Ctrl-C; everything changed is then put back. With root's rights
    /// (or CAP_SYS_NICE, CAP_BPF and CAP_PERFMON) by itself, else by the system service.
    Attach(AttachArgs),
    /// Look on: each thread's period, what it uses and what is reserved for it, response times, and why
    ///
    /// Shows what the service does for you (root sees everybody's); with --pid or a program, keeps these on the beat
    /// itself, as `attach` and `run` do, which needs root; with --from, a run that is over.
    Top(TopArgs),
    /// Serve ordinary users: reservations within quotas, over D-Bus
    ///
    /// The system service, which systemd starts: org.onbeat.Manager1 and org.freedesktop.RealtimeKit1 on the
    /// system bus (or the one that DBUS_SYSTEM_BUS_ADDRESS names). SIGTERM ends it, and everybody gets back
    /// what he had. Needs root, or CAP_SYS_NICE, CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.
    Daemon(DaemonArgs),
    /// Record what a program's threads do, for `onbeat analyze`
    ///
    /// Changes nothing. Ends when the program ends, or on Ctrl-C. Needs what the tracer needs: root (or CAP_BPF
    /// and CAP_PERFMON) for `bpf`; see `onbeat doctor`.
    Record(RecordArgs),
    /// Watch a program of your own: its periods, jobs, demands and response times
    ///
    /// Changes nothing but, with some tracers, the program's speed, and needs no privilege. Ends when the program ends,
    /// with its exit status. A response time is from the beat on which the job was due (or its wakeup, if that came
    /// first) to the end of its last burst; the beat is inferred, so a program that is always late by the same time
    /// does not show it. Of each thread the last 8192 bursts count.
    Watch(WatchArgs),
    /// Find the periods in a recording
    ///
    /// Reads onbeat's own recordings, ftrace text, `perf script` text, each plain or .gz, and CSV
    /// whose first column is a time in nanoseconds. Needs no privilege.
    Analyze(AnalyzeArgs),
    /// Start a program under a fixed reservation
    ///
    /// The program's first thread gets the reservation; what it starts does not inherit it. With
    /// `--through scx` the whole program does, with all its threads and what it starts. Ends
    /// with the program's exit status. With root's rights (or CAP_SYS_NICE) by itself, else by the system service.
    Reserve(ReserveArgs),
    /// Plan reservations for the threads of recordings
    ///
    /// Finds the threads that have a rhythm, and for each the smallest reservation with which its jobs would
    /// have missed no more deadlines than they may; says whether all fit this machine, and how to set
    /// them without onbeat. Needs no privilege.
    Plan(PlanArgs),
    /// Make a page of a run: timelines, response times, budgets, spectra, and what changed and why
    ///
    /// Reads what `run`, `attach` or `analyze` wrote with --report, and writes one HTML file that needs nothing else.
    Report(ReportArgs),
    /// Simulate a machine and its tasks, as a file or a recording describes them
    ///
    /// Runs in virtual time and needs no privilege. The same file and seed give the same figures. Several
    /// files and seeds are simulated on all CPUs at once. With --from: what the threads of a recording would have
    /// missed, and what energy used, under other policies and on other machines.
    Sim(SimArgs),
    /// Run one of onbeat's own schedulers in the kernel (sched_ext)
    ///
    /// The kernel goes back to its own scheduler when onbeat ends, however it ends, and when the scheduler fails.
    Scheduler(SchedulerArgs),
    /// Say what this kernel and this user can give onbeat, and what to do about the rest
    Doctor(DoctorArgs),
    /// Put back what an onbeat that was killed has left changed
    Restore(RestoreArgs),
    /// Write man pages or shell completions
    Generate(GenerateArgs),
}

/// `onbeat run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// How the program is kept on the beat.
    #[command(flatten)]
    pub(crate) keep: KeepOptions,
    /// Who does it.
    #[command(flatten)]
    pub(crate) service: ServiceOption,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// `onbeat attach`.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// How the processes are kept on the beat.
    #[command(flatten)]
    pub(crate) keep: KeepOptions,
    /// Who does it.
    #[command(flatten)]
    pub(crate) service: ServiceOption,
    /// The processes to keep on the beat, with all their threads
    #[arg(required = true, value_name = "PID")]
    pub(crate) pids: Vec<u32>,
}

/// `onbeat daemon`.
#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    /// The configuration [default: /etc/onbeat/onbeat.toml, if there is one]
    ///
    /// Files ending in .toml in the folder beside it that is called like it, but ends in .d, are read after it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Say what is wrong with the configuration, and do nothing else
    #[arg(long)]
    pub(crate) check: bool,
    /// Tell Prometheus how things stand: at this address on loopback, or in this file (NAME.prom) for node_exporter
    ///
    /// An address as 127.0.0.1:9464 answers GET /metrics. A file is replaced every 5 s, and removed at the end.
    #[arg(long, value_name = "ADDR|FILE")]
    pub(crate) metrics: Option<onbeat_metrics::Target>,
    /// Where it is noted what has to be put back.
    #[command(flatten)]
    pub(crate) state: StateDirectory,
}

/// `onbeat record`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("whom").required(true).args(["pids", "command"])))]
pub(crate) struct RecordArgs {
    /// The recording to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Record a running process, with all its threads; may be given several times
    #[arg(short, long = "pid", value_name = "PID")]
    pub(crate) pids: Vec<u32>,
    /// Record the processes that the program starts, too
    #[arg(long)]
    pub(crate) children: bool,
    /// How programs are heard.
    #[command(flatten)]
    pub(crate) tracing: TracingOptions,
    /// Record every wakeup, not only bursts
    ///
    /// A burst's own wakeup is always recorded. This adds the wakeups of threads that were awake
    /// already.
    #[arg(long)]
    pub(crate) wakeups: bool,
    /// Stop after this long, as in 10s; a program that was started is then ended (SIGTERM)
    #[arg(long, value_name = "TIME", value_parser = values::positive_span)]
    pub(crate) duration: Option<Span>,
    /// No progress line
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program to start and record, and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// `onbeat watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// How the program is heard.
    #[command(flatten)]
    pub(crate) tracing: TracingOptions,
    /// Watch the processes that the program starts, too
    #[arg(long)]
    pub(crate) children: bool,
    /// At the end, one JSON object per thread and line on standard output instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the threads' figures and jobs to this file, as one JSON object, for `onbeat report`
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write a timeline of jobs and bursts to this file, for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// No table and no progress line
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// `onbeat analyze`.
#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Analyse each window of this length by itself, as in 1s
    ///
    /// Windows start at the recording's first event. Without this, the whole recording is one
    /// window.
    #[arg(long, value_name = "TIME", value_parser = values::positive_span)]
    pub(crate) window: Option<Span>,
    /// How periods are found
    #[arg(long, value_enum, default_value_t)]
    pub(crate) method: Method,
    /// One JSON object per line, thread and window instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the threads' figures and jobs to this file, as one JSON object, for `onbeat report`
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write a timeline of jobs and bursts to this file, for ui.perfetto.dev
    ///
    /// Of each thread the last 8192 bursts.
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
}

/// `onbeat reserve`.
#[derive(Debug, Args)]
pub(crate) struct ReserveArgs {
    /// The CPU time in each period, as in 5ms; with --through scx perhaps more than the period, of several CPUs
    #[arg(long, value_name = "TIME")]
    runtime: Span,
    /// The time from one replenishment to the next, as in 20ms
    #[arg(long, value_name = "TIME")]
    period: Span,
    /// The time within which the runtime is given; the period if left out
    #[arg(long, value_name = "TIME")]
    deadline: Option<Span>,
    /// Make the reservation a ceiling, too; by default the program may also use what no other reservation needs
    #[arg(long)]
    pub(crate) hard: bool,
    /// Which part of the kernel keeps the reservation
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value_t,
        conflicts_with = "hard"
    )]
    pub(crate) through: Through,
    /// Where it is noted what has to be put back.
    #[command(flatten)]
    pub(crate) state: StateDirectory,
    /// Who does it.
    #[command(flatten)]
    pub(crate) service: ServiceOption,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

impl ReserveArgs {
    /// The reservation that the flags describe.
    pub(crate) fn reservation(&self) -> Result<Reservation, onbeat_model::ReservationError> {
        Reservation::new(
            self.runtime,
            self.deadline.unwrap_or(self.period),
            self.period,
        )
    }

    /// The same for the whole program, on as many CPUs as it takes.
    pub(crate) fn budget(&self) -> Result<Budget, NoBudget> {
        Budget::new(
            self.runtime,
            self.deadline.unwrap_or(self.period),
            self.period,
        )
    }
}

/// `onbeat plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The recordings
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Which share of its jobs each thread may miss
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = values::percent)]
    pub(crate) misses: Bandwidth,
    /// Write all of them to this file as a task set for rt-app, a stand-in for each thread
    #[arg(long, value_name = "FILE")]
    pub(crate) rt_app: Option<PathBuf>,
    /// One JSON object per thread and line instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `onbeat report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// What --report wrote
    #[arg(value_name = "RUN.json")]
    pub(crate) file: PathBuf,
    /// The page to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// `onbeat doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// One JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `onbeat restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// Where it is noted what has to be put back.
    #[command(flatten)]
    pub(crate) state: StateDirectory,
    /// Undo also what an onbeat that is still running has changed
    #[arg(long)]
    pub(crate) force: bool,
    /// Say nothing but what failed
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Before that, wait for the end of the process whose descriptor (pidfd) is standard input
    #[arg(long, hide = true)]
    pub(crate) guard: bool,
}

/// `onbeat generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// What to write
    #[arg(value_enum)]
    pub(crate) what: Generated,
    /// The folder to write it to; made if there is none
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

/// What `onbeat generate` can write.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Generated {
    /// One man page for onbeat, one for each command, and onbeat.toml's
    Man,
    /// Completions for bash, zsh, fish and elvish
    Completions,
}
