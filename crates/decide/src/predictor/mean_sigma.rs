//! Moving average plus k standard deviations of the last jobs' execution times.
//!
//! The textbook rival of the percentile (named in LFS++, section 5.3, by way of Palopoli et al.
//! 2009): smoother, and right where execution times are spread evenly; wasteful where they come in
//! two sizes, as I and P frames do.

use onbeat_model::{Demand, Instant, Job, Reservation, Span};

use super::catch_up::CatchUp;
use super::{Pace, Parameters, Predictor, generosity};

/// See the file's head.
pub struct MeanSigma {
    parameters: Parameters,
    planned: Option<Span>,
    pace: Pace,
    catch_up: CatchUp,
}

impl MeanSigma {
    /// Knows nothing yet.
    #[must_use]
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            planned: None,
            pace: Pace::default(),
            catch_up: CatchUp::default(),
        }
    }
}

impl Predictor for MeanSigma {
    fn name(&self) -> &'static str {
        "mean-sigma"
    }

    fn job(&mut self, job: &Job, demand: &Demand) {
        self.catch_up.job(job, self.planned);
        self.pace = Pace::of(job);
        self.planned = demand.mean().map(|mean| {
            let variance = demand
                .recent()
                .map(|executed| (executed.abs_diff(mean).as_ns() as f64).powi(2))
                .sum::<f64>()
                / demand.len() as f64;
            let sigma = Span::from_ns(variance.sqrt().round() as u64);
            let predicted = mean + sigma.scale(self.parameters.sigmas);
            predicted
                .scale(1.0 + self.parameters.spread.max(0.0))
                .scale(generosity(demand.len(), self.parameters.window))
        });
    }

    fn sampled(&mut self, _executed: Span, _over: Span) {}

    fn exhausted(&mut self, at: Instant, held: Reservation) {
        self.catch_up.exhausted(at, held, &self.parameters);
    }

    fn rate_changed(&mut self, period: Span) {
        let stretch = self.pace.stretch(period);
        self.planned = self.planned.map(|planned| planned.scale(stretch));
        self.pace = Pace(Some(period));
        self.catch_up.clear();
    }

    fn speed_changed(&mut self, factor: f64) {
        self.planned = self.planned.map(|planned| planned.scale(factor));
        self.catch_up.scale(factor);
    }

    fn runtime(&self, period: Span) -> Option<Span> {
        self.catch_up.over(self.planned, period)
    }
}
