//! The flags that `run` and `attach` share: how threads are kept on the beat.

use std::path::PathBuf;

use clap::Args;
use onbeat_control::PowerSettings;
use onbeat_decide::power::Band;
use onbeat_decide::predictor::{Kind, Parameters};
use onbeat_model::{Bandwidth, Span};

use super::state::StateDirectory;
use super::values::{self, Method, PowerMode, PredictorName, Weight};

/// How threads are kept on the beat.
#[derive(Debug, Args)]
pub(crate) struct KeepOptions {
    /// How periods are found
    #[arg(long, value_enum, default_value_t, help_heading = "Prediction")]
    pub(crate) analyser: Method,
    /// How a thread's next budget is predicted from its last jobs
    #[arg(long, value_enum, default_value_t, help_heading = "Prediction")]
    predictor: PredictorName,
    /// How many past jobs (or samples, for `rate`) the prediction looks at
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Prediction",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    samples: u16,
    /// The share of those that must have fitted into the budget (`percentile` and `rate`)
    #[arg(long, value_name = "P", default_value_t = 0.9375, help_heading = "Prediction",
          value_parser = values::fraction, allow_negative_numbers = true)]
    percentile: f64,
    /// How much is added on top of what is predicted, as a share of it
    #[arg(long, value_name = "X", default_value_t = Parameters::default().spread,
          help_heading = "Prediction", value_parser = values::not_negative, allow_negative_numbers = true)]
    spread: f64,
    /// Standard deviations added to the mean (`mean-sigma`)
    #[arg(long, value_name = "K", default_value_t = Parameters::default().sigmas,
          help_heading = "Prediction", value_parser = values::not_negative, allow_negative_numbers = true)]
    sigmas: f64,
    /// How often the CPU time is sampled, as in 1s (`rate`)
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Prediction",
          value_parser = values::positive_span)]
    sampling: Span,

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
    /// Let threads use bandwidth that other reservations leave (GRUB)
    #[arg(long, help_heading = "Limits")]
    pub(crate) reclaim: bool,

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
    /// The utilisation of the busiest CPU below which a lower speed is set, and above which the highest one
    #[arg(long, value_name = "LOW-HIGH", default_value = "20%-80%", help_heading = "Power",
          requires = "power", value_parser = values::band)]
    power_band: Band,
    /// How often that is looked at, as in 1s
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Power",
          requires = "power", value_parser = values::positive_span)]
    power_sampling: Span,

    /// Give each process that has reservations one CPU, the others keep the first
    ///
    /// Partitioned EDF instead of global EDF: each CPU but the first becomes a partition of its own (a
    /// cpuset of cgroup v2), on which nothing runs but what onbeat places there.
    #[arg(long, help_heading = "Limits")]
    pub(crate) partition: bool,

    /// Keep this running process on the beat, too; may be given several times
    #[arg(long, value_name = "PID", help_heading = "Whom")]
    pub(crate) also: Vec<u32>,
    /// Keep the processes that the program starts on the beat, too
    #[arg(long, help_heading = "Whom")]
    pub(crate) children: bool,

    /// Give no reservation on trial to a thread that starves before it has shown a rhythm
    ///
    /// A thread that hardly gets to run shows no rhythm, whatever it is; by default it gets a
    /// reservation for three seconds, in which it may. With this flag only a rhythm that is seen counts.
    #[arg(long, help_heading = "Whom")]
    pub(crate) no_trials: bool,

    /// Decide and log, but change nothing
    #[arg(short = 'n', long, help_heading = "Output")]
    pub(crate) dry_run: bool,
    /// Write the closing figures to this file, as one JSON object
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    /// Write every decision and its reason to this file, one JSON object per line
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) log: Option<PathBuf>,
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
        self.power.map(|PowerMode::Band| PowerSettings {
            band: self.power_band,
            sampling: self.power_sampling,
        })
    }

    /// The predictor that the flags describe.
    pub(crate) fn predictor(&self) -> (Kind, Parameters) {
        let window = usize::from(self.samples);
        let parameters = Parameters {
            window,
            above: above(window, self.percentile),
            spread: self.spread,
            sigmas: self.sigmas,
            sampling: self.sampling,
            ..Parameters::default()
        };
        (self.predictor.into(), parameters)
    }
}

/// The paper's j of p = (N-j)/N (LFS++, section 5.3): how many of the last `window` jobs may need
/// more. Rounded down, so that at least the share `percentile` fits.
fn above(window: usize, percentile: f64) -> usize {
    let above = (1.0 - percentile) * window as f64;
    // What floating point takes away from a whole number is not meant.
    (above + 1e-9) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_whole_number_of_jobs_that_may_need_more() {
        assert_eq!(above(16, 0.9375), 1);
        assert_eq!(above(16, 1.0), 0);
        assert_eq!(above(10, 0.9), 1);
        assert_eq!(above(100, 0.95), 5);
        assert_eq!(above(16, 0.95), 0);
    }

    #[test]
    fn the_flags_defaults_are_the_predictors_own() {
        let parameters = Parameters::default();
        assert_eq!(parameters.window, 16);
        assert_eq!(parameters.above, above(16, 0.9375));
        assert_eq!(parameters.sampling, Span::from_secs(1));
        let power = PowerSettings::default();
        assert_eq!(values::band("20%-80%"), Ok(power.band));
        assert_eq!(power.sampling, Span::from_secs(1));
    }
}
