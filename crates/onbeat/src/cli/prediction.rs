//! The flags that say how budgets are predicted, live and in simulations.

use clap::Args;
use onbeat_decide::predictor::{Kind, Parameters};
use onbeat_model::{Bandwidth, Span};

use super::values::{self, PredictorName};

/// From so many jobs GRACE-OS estimates a distribution (section 4.3).
const PROFILED_JOBS: usize = 100;

/// The predictor.
#[derive(Debug, Args)]
pub(crate) struct PredictionOptions {
    /// Rule that predicts the next budget from the last jobs
    /// [default: percentile; statistical with `--power grace`]
    #[arg(long, value_enum, help_heading = "Prediction")]
    predictor: Option<PredictorName>,
    /// Number of past jobs (or samples, for `rate`) in the prediction
    /// [default: 16; 100 for `statistical`]; with more, budgets follow changes later
    #[arg(long, value_name = "N", help_heading = "Prediction",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    samples: Option<u16>,
    /// Share of jobs that stay within their budget, unless a thread declares its own; a higher one
    /// reserves more (`statistical`)
    #[arg(long, value_name = "SHARE", default_value = "95%", help_heading = "Prediction",
          value_parser = values::percent)]
    pub(crate) rho: Bandwidth,
    /// Share of these jobs that would have fitted into the budget; a higher one reserves more
    /// (`percentile`, `rate`)
    #[arg(long, value_name = "P", default_value_t = 0.9375, help_heading = "Prediction",
          value_parser = values::fraction, allow_negative_numbers = true)]
    percentile: f64,
    /// Amount added to the prediction, as a share of it; a larger one reserves more
    #[arg(long, value_name = "X", default_value_t = Parameters::default().spread,
          help_heading = "Prediction", value_parser = values::not_negative, allow_negative_numbers = true)]
    spread: f64,
    /// Number of standard deviations added to the mean; a larger one reserves more (`mean-sigma`)
    #[arg(long, value_name = "K", default_value_t = Parameters::default().sigmas,
          help_heading = "Prediction", value_parser = values::not_negative, allow_negative_numbers = true)]
    sigmas: f64,
    /// Time between two samples of the CPU time, such as 1s; a longer one reacts later (`rate`)
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Prediction",
          value_parser = values::positive_span)]
    sampling: Span,
}

impl PredictionOptions {
    /// The predictor that the flags describe; the `usual` one if they name none.
    pub(crate) fn predictor(&self, usual: Kind) -> (Kind, Parameters) {
        let kind = self.predictor.map_or(usual, Kind::from);
        let defaults = Parameters::default();
        let (window, overruns) = match kind {
            Kind::Statistical => (PROFILED_JOBS, 1.0 - self.rho.as_cpus()),
            _ => (defaults.window, defaults.overruns),
        };
        let window = self.samples.map_or(window, usize::from);
        let parameters = Parameters {
            window,
            above: above(window, self.percentile),
            spread: self.spread,
            sigmas: self.sigmas,
            sampling: self.sampling,
            overruns,
            ..defaults
        };
        (kind, parameters)
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
    }
}
