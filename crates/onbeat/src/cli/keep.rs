//! The flags that `run` and `attach` share: how threads are kept on the beat.

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

/// How threads are kept on the beat.
#[derive(Debug, Args)]
pub(crate) struct KeepOptions {
    /// How periods are found
    #[arg(long, value_enum, default_value_t, help_heading = "Prediction")]
    pub(crate) analyser: Method,
    /// How budgets are predicted.
    #[command(flatten)]
    pub(crate) prediction: PredictionOptions,

    /// How programs are heard.
    #[command(flatten)]
    pub(crate) tracing: TracingOptions,

    /// The most that all reservations together may take, in per cent of all CPUs
    #[arg(long, value_name = "PERCENT", default_value = "85%", help_heading = "Limits",
          value_parser = values::percent)]
    pub(crate) cap: Bandwidth,
    /// The most that one thread may take, in per cent of one CPU
    #[arg(long, value_name = "PERCENT", default_value = "85%", help_heading = "Limits",
          value_parser = values::percent)]
    pub(crate) task_cap: Bandwidth,
    /// What each periodic thread gets even if not everything fits, in per cent of one CPU
    #[arg(long, value_name = "PERCENT", default_value = "1%", help_heading = "Limits",
          value_parser = values::percent)]
    pub(crate) minimum: Bandwidth,
    /// How much a thread counts when not everything fits; others count 1
    ///
    /// NAME is a thread's name or number. May be given several times.
    #[arg(long = "weight", value_name = "NAME=WEIGHT", help_heading = "Limits")]
    pub(crate) weights: Vec<Weight>,
    /// Make each reservation a ceiling, too; by default a thread may also use what no other reservation needs
    ///
    /// LFS++'s setting. A job that needs more than its budget then waits for the next period, although the
    /// CPU may be idle: costs late jobs where a period or a demand was inferred wrongly.
    #[arg(long, help_heading = "Limits")]
    pub(crate) hard: bool,

    /// Set the speed of the CPUs, too, so that no job runs short of budget when they slow down
    ///
    /// Without this, their speed is left alone. A governor stays what it is: `userspace` is told the speed, any
    /// other one gets limits with one speed between them.
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        help_heading = "Power",
        conflicts_with = "dry_run"
    )]
    power: Option<PowerMode>,
    /// The utilisation of the busiest CPU below which a lower speed is set, and above which the highest one (`band`)
    #[arg(long, value_name = "LOW-HIGH", default_value = "20%-80%", help_heading = "Power",
          requires = "power", value_parser = values::band)]
    power_band: Band,
    /// What programs without a reservation are to keep (`grace`), in per cent of all CPUs at their highest speed
    #[arg(long, value_name = "PERCENT", default_value = "0%", help_heading = "Power",
          requires = "power", value_parser = values::percent_or_none)]
    best_effort: Bandwidth,
    /// How often the speed is looked at, as in 1s
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Power",
          requires = "power", value_parser = values::positive_span)]
    power_sampling: Span,

    /// Give each process that has reservations one CPU, the others keep the first
    ///
    /// Partitioned EDF instead of global EDF: each CPU but the first becomes a partition of its own (a
    /// cpuset of cgroup v2), on which nothing runs but what onbeat places there.
    #[arg(long, help_heading = "Limits")]
    pub(crate) partition: bool,

    /// Which part of the kernel keeps the reservations
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Limits",
          conflicts_with_all = ["hard", "power", "partition", "dry_run"])]
    pub(crate) through: Through,

    /// Keep this running process on the beat, too; may be given several times
    #[arg(long, value_name = "PID", help_heading = "Whom")]
    pub(crate) also: Vec<u32>,
    /// Keep the processes that the program starts on the beat, too
    #[arg(long, help_heading = "Whom")]
    pub(crate) children: bool,

    /// Whether to serve the threads of other programs that work for these: display server, sound server, compositor
    ///
    /// They are found by who wakes whom at the same rhythm, get the period of the whole and a budget each, and are
    /// given back when nothing that is kept on the beat needs them any more. By the tracer bpf alone, and not with
    /// --partition.
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        help_heading = "Whom"
    )]
    pub(crate) pipelines: Pipelines,

    /// Do nothing for a thread before it has shown a rhythm
    ///
    /// A thread that hardly gets to run shows no rhythm, whatever it is. By default the threads of a program that
    /// begins, or of one that has a thread with a rhythm, run at nice -20 while they have no reservation, and one
    /// that starves later is given three seconds. With this flag only a rhythm that is seen counts.
    #[arg(long, help_heading = "Whom")]
    pub(crate) no_trials: bool,

    /// Decide and log, but change nothing
    #[arg(short = 'n', long, help_heading = "Output")]
    pub(crate) dry_run: bool,
    /// Write figures, jobs and decisions to this file at the end, as one JSON object, for `onbeat report`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    /// Write a timeline of jobs, bursts, budgets and decisions to this file, for ui.perfetto.dev
    ///
    /// Of each thread the last 8192 bursts. It is written at the end.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Write every decision and its reason to this file, one JSON object per line
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) log: Option<PathBuf>,
    /// Tell Prometheus how things stand: at this address on loopback, or in this file (NAME.prom) for node_exporter
    ///
    /// An address as 127.0.0.1:9464 answers GET /metrics. A file is replaced every 5 s, and removed at the end.
    #[arg(long, value_name = "ADDR|FILE", help_heading = "Output")]
    pub(crate) metrics: Option<Target>,
    /// No messages and no closing table
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Where it is noted what has to be put back.
    #[command(flatten)]
    pub(crate) state: StateDirectory,
}

impl KeepOptions {
    /// How the speed of the CPUs is managed, if it is.
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
