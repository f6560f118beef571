//! The flags that say how budgets are predicted, live and in simulations.

use clap::Args;
use onbeat_decide::predictor::{Kind, Parameters};
use onbeat_model::Span;

use super::values::{self, PredictorName};

/// How budgets are predicted.
#[derive(Debug, Args)]
pub(crate) struct PredictionOptions {
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
}

impl PredictionOptions {
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
    }
}
