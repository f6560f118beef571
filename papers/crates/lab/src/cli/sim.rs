//! The flags of `onbeat-lab sim`: files to simulate, or recordings to play under other policies.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use onbeat_model::Bandwidth;
use onbeat_sim::comparison::ComparedWay;
use onbeat_sim::policy::grace::Scheme;
use onbeat_sim::policy::linux::Overrun;
use onbeat_sim::scenario::Ruling;

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

/// `onbeat-lab sim`.
#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// The machine, its tasks and the duration, in TOML
    #[arg(required_unless_present = "from", conflicts_with_all = WHAT_IF, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Recordings under other policies.
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

/// Recordings under other policies and on other machines.
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
    pub(crate) policies: Vec<RecordedPolicy>,
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
    /// onbeat's predictor.
    #[command(flatten)]
    pub(crate) config: ConfigOption,
}

/// The policy for the recorded threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordedPolicy {
    /// SCHED_OTHER, as for any program
    Fair,
    /// SCHED_FIFO for periodic threads, the shorter period first
    Fifo,
    /// SCHED_RR for periodic threads, all with one priority, as RealtimeKit gives it
    Rr,
    /// The reservations of `onbeat-lab plan` for periodic threads
    Plan,
    /// The same, with the speed in proportion to the bandwidth in use (the governor schedutil)
    GrubPa,
    /// Reservations that the share prediction.rho of the jobs stays within (GRACE-OS)
    Statistical,
    /// onbeat's own loop
    Onbeat,
    /// onbeat's own loop, with the speed of the CPUs (`power.rule` = "band")
    OnbeatPower,
    /// GRACE-OS: budgets from the distribution of demands, and a speed that grows inside each job;
    /// at the full speed only
    Grace,
    /// One speed for all waiting jobs, from a forecast of each; at the full speed only
    JointForecast,
    /// The scheduler of Linux 2.4 (`onbeat-lab scheduler linux24`)
    Linux24,
    /// BEST (`onbeat-lab scheduler best`)
    Best,
    /// BeRate (`onbeat-lab scheduler berate`)
    Berate,
}

impl RecordedPolicy {
    /// Whether it is right on a machine of that share of the recorded one's speed.
    pub(crate) fn suits(self, speed: f64) -> bool {
        speed == 1.0 || !matches!(self, Self::Grace | Self::JointForecast)
    }
}

impl From<RecordedPolicy> for ComparedWay {
    fn from(policy: RecordedPolicy) -> Self {
        match policy {
            RecordedPolicy::Fair => Self::Fair,
            RecordedPolicy::Fifo => Self::Fifo,
            RecordedPolicy::Rr => Self::RoundRobin,
            RecordedPolicy::Plan => Self::Plan,
            RecordedPolicy::GrubPa => Self::GrubPa,
            RecordedPolicy::Statistical => Self::Statistical,
            RecordedPolicy::Onbeat => Self::Onbeat,
            RecordedPolicy::OnbeatPower => Self::OnbeatPower,
            RecordedPolicy::Grace => Self::Scheme(Scheme::GraceOs),
            RecordedPolicy::JointForecast => Self::Scheme(Scheme::JointForecast),
            RecordedPolicy::Linux24 => Self::Ruled(Ruling::Linux24),
            RecordedPolicy::Best => Self::Ruled(Ruling::Best),
            RecordedPolicy::Berate => Self::Ruled(Ruling::Berate),
        }
    }
}

/// The rule for a thread that needs more than its reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverrunRule {
    /// It waits for its next period
    #[default]
    Hard,
    /// Its deadline is postponed
    Soft,
    /// It uses what other reservations leave, then waits (GRUB)
    Reclaim,
}

impl OverrunRule {
    /// The rule of the simulated server, and whether it reclaims.
    pub(crate) const fn server(self) -> (Overrun, bool) {
        match self {
            Self::Hard => (Overrun::Hard, false),
            Self::Soft => (Overrun::Soft, false),
            Self::Reclaim => (Overrun::Hard, true),
        }
    }
}
