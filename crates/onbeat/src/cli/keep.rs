//! The flags of the control loop, which `run`, `attach` and `top` share.

use std::path::PathBuf;

use clap::Args;
use onbeat_control::{PowerSettings, SpeedRule};
use onbeat_decide::power::Band;
use onbeat_decide::predictor::{Kind, Parameters};
use onbeat_metrics::Target;
use onbeat_model::{Bandwidth, Span};

use super::prediction::PredictionOptions;
use super::state::StateDirectory;
use super::tracing::TracingOptions;
use super::values::{self, Method, Pipelines, PowerMode, Through, Weight};

/// The control loop.
#[derive(Debug, Args)]
pub(crate) struct KeepOptions {
    /// The period analyser
    #[arg(long, value_enum, default_value_t, help_heading = "Prediction")]
    pub(crate) analyser: Method,
    /// The predictor.
    #[command(flatten)]
    pub(crate) prediction: PredictionOptions,

    /// The tracer.
    #[command(flatten)]
    pub(crate) tracing: TracingOptions,

    /// Limit of all reservations together, in % of all CPUs; a higher one leaves less to other
    /// programs
    #[arg(long, value_name = "PERCENT", default_value = "85%", help_heading = "Limits",
          value_parser = values::percent)]
    pub(crate) cap: Bandwidth,
    /// Limit of one thread's reservation, in % of one CPU; a higher one leaves less to other
    /// threads
    #[arg(long, value_name = "PERCENT", default_value = "85%", help_heading = "Limits",
          value_parser = values::percent)]
    pub(crate) task_cap: Bandwidth,
    /// Guaranteed minimum of each periodic thread under overload, in % of one CPU; a higher one
    /// leaves less to weights
    #[arg(long, value_name = "PERCENT", default_value = "1%", help_heading = "Limits",
          value_parser = values::percent)]
    pub(crate) minimum: Bandwidth,
    /// Weight of a thread under overload [default: 1]; a higher one takes bandwidth from the others
    ///
    /// NAME is a thread's name or number. May be given several times.
    #[arg(long = "weight", value_name = "NAME=WEIGHT", help_heading = "Limits")]
    pub(crate) weights: Vec<Weight>,
    /// Make each reservation a ceiling, too
    /// [default: a thread may also use CPU time that no reservation needs]
    ///
    /// LFS++'s setting. A job that needs more than its budget then waits for the next period, even
    /// if the CPU is idle: jobs are late if a period or a demand was inferred wrongly.
    #[arg(long, help_heading = "Limits")]
    pub(crate) hard: bool,

    /// Rule for the speed of the CPUs [default: onbeat leaves the speed alone]
    ///
    /// onbeat raises the budgets before the speed falls, so that no job runs short. The governor
    /// stays: `userspace` gets the speed, any other one gets it as both its lower and its upper
    /// limit.
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        help_heading = "Power",
        conflicts_with = "dry_run"
    )]
    power: Option<PowerMode>,
    /// Utilisation of the busiest CPU below which the speed falls, and above which it is the
    /// highest (`band`)
    #[arg(long, value_name = "LOW-HIGH", default_value = "20%-80%", help_heading = "Power",
          requires = "power", value_parser = values::band)]
    power_band: Band,
    /// Share kept for programs without a reservation, in % of all CPUs at full speed; a higher one
    /// costs energy (`grace`)
    #[arg(long, value_name = "PERCENT", default_value = "0%", help_heading = "Power",
          requires = "power", value_parser = values::percent_or_none)]
    best_effort: Bandwidth,
    /// Time between two decisions on the speed, such as 1s; a longer one reacts later
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Power",
          requires = "power", value_parser = values::positive_span)]
    power_sampling: Span,

    /// Give each process with reservations a CPU of its own; other programs keep the first CPU
    ///
    /// Partitioned EDF instead of global EDF: each CPU but the first becomes a partition (a cpuset
    /// of cgroup v2), on which only the processes run that onbeat places there.
    #[arg(long, help_heading = "Limits")]
    pub(crate) partition: bool,

    /// The part of the kernel that enforces the reservations
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Limits",
          conflicts_with_all = ["hard", "power", "partition", "dry_run"])]
    pub(crate) through: Through,

    /// A running process that gets reservations, too; may be given several times
    #[arg(long, value_name = "PID", help_heading = "Targets")]
    pub(crate) also: Vec<u32>,
    /// Also reserve for the processes that the program starts
    #[arg(long, help_heading = "Targets")]
    pub(crate) children: bool,

    /// Reservations for threads of other programs on the pipeline: display server, sound server,
    /// compositor
    ///
    /// onbeat finds the threads that work for each job by who wakes whom. Each gets the pipeline's
    /// period and a budget, as long as a thread with a reservation needs it. Works with the tracer
    /// bpf, and without --partition.
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        help_heading = "Targets"
    )]
    pub(crate) pipelines: Pipelines,

    /// Leave a thread alone until its period is known; it is late until then if it starves
    ///
    /// A thread that hardly gets to run shows no period. By default the threads without a
    /// reservation of a program that begins, or that has a periodic thread, run at nice -20, and
    /// one that starves later gets a reservation on trial for three seconds.
    #[arg(long, help_heading = "Targets")]
    pub(crate) no_trials: bool,

    /// Decide and log, but change nothing
    #[arg(short = 'n', long, help_heading = "Output")]
    pub(crate) dry_run: bool,
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
    /// Metrics for Prometheus: an address on loopback, or a file (NAME.prom) for node_exporter
    /// [default: none]
    ///
    /// An address such as 127.0.0.1:9464 answers GET /metrics. A file is replaced every 5 s, and
    /// removed at the end.
    #[arg(long, value_name = "ADDR|FILE", help_heading = "Output")]
    pub(crate) metrics: Option<Target>,
    /// Print no messages and no table at the end
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// The folder of the state file.
    #[command(flatten)]
    pub(crate) state: StateDirectory,
}

impl KeepOptions {
    /// The rule for the CPUs' speed, if there is one.
    pub(crate) fn power(&self) -> Option<PowerSettings> {
        let rule = match self.power? {
            PowerMode::Band => SpeedRule::Band(self.power_band),
            PowerMode::Grace => SpeedRule::Uniform {
                best_effort: self.best_effort.as_cpus(),
            },
        };
        Some(PowerSettings {
            rule,
            sampling: self.power_sampling,
        })
    }

    /// The predictor that the flags describe.
    pub(crate) fn predictor(&self) -> (Kind, Parameters) {
        self.prediction.predictor(match self.power {
            Some(PowerMode::Grace) => Kind::Statistical,
            Some(PowerMode::Band) | None => Kind::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_defaults_are_the_predictors_own() {
        let power = PowerSettings::default();
        assert_eq!(values::band("20%-80%").map(SpeedRule::Band), Ok(power.rule));
        assert_eq!(power.sampling, Span::from_secs(1));
    }
}
