//! The flags of `onbeat sim`: files to simulate, or recordings to ask "what if" of.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use onbeat_model::Bandwidth;
use onbeat_sim::comparison::Way;
use onbeat_sim::policy::grace::Scheme;
use onbeat_sim::policy::linux::Overrun;
use onbeat_sim::scenario::Ruling;

use super::prediction::PredictionOptions;
use super::values::{self, Seeds};

/// The flags that ask something of recordings, which a file to simulate says itself.
const WHAT_IF: [&str; 16] = [
    "from",
    "policies",
    "cpus",
    "speeds",
    "hogs",
    "misses",
    "overrun",
    "fixed_power",
    "idle_power",
    "predictor",
    "rho",
    "samples",
    "percentile",
    "spread",
    "sigmas",
    "sampling",
];

/// `onbeat sim`.
#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// What to simulate: machine, tasks and for how long, in TOML
    #[arg(required_unless_present = "from", conflicts_with_all = WHAT_IF, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How the threads of recordings would have fared.
    #[command(flatten)]
    pub(crate) comparison: ComparisonOptions,
    /// Simulate each file with these seeds instead of its own: one, or a range as in 1-100
    #[arg(long, value_name = "SEEDS", conflicts_with = "from")]
    pub(crate) seed: Option<Seeds>,
    /// One JSON object per run and line instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Write each job to this file, as CSV; of one run only
    #[arg(long, value_name = "FILE")]
    pub(crate) jobs: Option<PathBuf>,
    /// Write a timeline to this file, for ui.perfetto.dev; of one run only
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// No progress line
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// How the threads of recordings would have fared under other policies and on other machines.
#[derive(Debug, Args)]
pub(crate) struct ComparisonOptions {
    /// Ask how the threads of this recording would have fared otherwise; may be given several times
    ///
    /// Takes every recording that `analyze` does if it tells what CPU time threads took, or a .csv with a heading and
    /// the columns release_ns and demand_ns (and task). Several recordings run side by side.
    #[arg(long, value_name = "RECORDING", help_heading = "What if")]
    pub(crate) from: Vec<PathBuf>,
    /// The policies to compare, as in fair,plan; all if left out
    #[arg(
        long = "policy",
        value_enum,
        value_name = "POLICY",
        value_delimiter = ',',
        help_heading = "What if"
    )]
    pub(crate) policies: Vec<Policy>,
    /// On so many CPUs, as in 1,2,4; as many as the recorded machine had, or this one, if left out
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = "What if",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) cpus: Vec<u16>,
    /// At this share of the recorded machine's speed, as in 50%,100%
    #[arg(long = "speed", value_name = "SHARE", value_delimiter = ',', default_value = "100%",
          help_heading = "What if", value_parser = values::percent)]
    pub(crate) speeds: Vec<Bandwidth>,
    /// Beside so many programs that want all the CPU time they can get
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "What if",
          value_parser = clap::value_parser!(u16).range(0..=4096))]
    pub(crate) hogs: u16,
    /// Which share of its jobs each thread may miss (`plan`)
    #[arg(long, value_name = "SHARE", default_value = "1%", help_heading = "What if",
          value_parser = values::percent)]
    pub(crate) misses: Bandwidth,
    /// What happens to a thread that needs more than `plan` or `statistical` reserved for it
    #[arg(long, value_enum, default_value_t, help_heading = "What if")]
    pub(crate) overrun: OverrunRule,
    /// The part of a busy CPU's full power that does not depend on its speed
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "What if",
          value_parser = values::share)]
    pub(crate) fixed_power: f64,
    /// The power of an idle CPU, as a share of its full power
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "What if",
          value_parser = values::share)]
    pub(crate) idle_power: f64,
    /// How onbeat predicts budgets.
    #[command(flatten)]
    pub(crate) prediction: PredictionOptions,
}

/// How the recorded threads are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// SCHED_OTHER, as any program
    Fair,
    /// SCHED_FIFO for periodic threads, the shorter period first
    Fifo,
    /// SCHED_RR for periodic threads, all with one priority, as RealtimeKit gives it
    Rr,
    /// The reservations of `onbeat plan` for periodic threads
    Plan,
    /// The same, with the speed in proportion to the bandwidth in use (the governor schedutil)
    GrubPa,
    /// Reservations within which a share of the jobs stays (GRACE-OS)
    Statistical,
    /// onbeat's own loop
    Onbeat,
    /// onbeat's own loop, which sets the speed of the CPUs, too (`run --power band`)
    OnbeatPower,
    /// GRACE-OS: budgets from the distribution of demands, and a speed that grows inside each job; at the full speed only
    Grace,
    /// A speed for all jobs that wait, from forecasts of each; at the full speed only
    JointForecast,
    /// The scheduler of Linux 2.4 (`onbeat scheduler linux24`)
    Linux24,
    /// BEST (`onbeat scheduler best`)
    Best,
    /// BeRate (`onbeat scheduler berate`)
    Berate,
}

impl Policy {
    /// Whether it is right on a machine of that share of the recorded one's speed.
    pub(crate) fn suits(self, speed: f64) -> bool {
        speed == 1.0 || !matches!(self, Self::Grace | Self::JointForecast)
    }
}

impl From<Policy> for Way {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Fair => Self::Fair,
            Policy::Fifo => Self::Fifo,
            Policy::Rr => Self::RoundRobin,
            Policy::Plan => Self::Plan,
            Policy::GrubPa => Self::GrubPa,
            Policy::Statistical => Self::Statistical,
            Policy::Onbeat => Self::Onbeat,
            Policy::OnbeatPower => Self::OnbeatPower,
            Policy::Grace => Self::Scheme(Scheme::GraceOs),
            Policy::JointForecast => Self::Scheme(Scheme::JointForecast),
            Policy::Linux24 => Self::Ruled(Ruling::Linux24),
            Policy::Best => Self::Ruled(Ruling::Best),
            Policy::Berate => Self::Ruled(Ruling::Berate),
        }
    }
}

/// What happens to a thread that needs more than was reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverrunRule {
    /// It waits for its next period
    #[default]
    Hard,
    /// Its deadline is postponed
    Soft,
    /// It may use what other reservations leave, and waits then (GRUB)
    Reclaim,
}

impl OverrunRule {
    /// What the simulated server does, and whether it reclaims.
    pub(crate) const fn server(self) -> (Overrun, bool) {
        match self {
            Self::Hard => (Overrun::Hard, false),
            Self::Soft => (Overrun::Soft, false),
            Self::Reclaim => (Overrun::Hard, true),
        }
    }
}
