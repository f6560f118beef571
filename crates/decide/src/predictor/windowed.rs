//! A predictor that plans anew with every job, and from nothing but the window of the last jobs'
//! demands: what is left to say of one is its rule.

use onbeat_model::{Demand, Instant, Job, Reservation, Span};

use super::catch_up::CatchUp;
use super::{Pace, Parameters, Predictor, generosity};

/// The need of the next jobs, from the last ones' demands; none as long as nothing is known.
pub(super) type WindowRule = fn(&Demand, &Parameters) -> Option<Span>;

pub(super) struct Windowed {
    rule: WindowRule,
    parameters: Parameters,
    planned: Option<Span>,
    pace: Pace,
    catch_up: CatchUp,
}

impl Windowed {
    pub(super) fn new(rule: WindowRule, parameters: Parameters) -> Self {
        Self {
            rule,
            parameters,
            planned: None,
            pace: Pace::default(),
            catch_up: CatchUp::default(),
        }
    }
}

impl Predictor for Windowed {
    fn job(&mut self, job: &Job, demand: &Demand) {
        self.catch_up.job(job, self.planned);
        self.pace = Pace::of(job);
        self.planned = (self.rule)(demand, &self.parameters);
    }

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

    fn lasting(&self, period: Span) -> Option<Span> {
        self.planned.map(|planned| planned.min(period))
    }
}

/// The moving average plus k standard deviations: the textbook rival of the percentile (named in
/// LFS++, section 5.3, by way of Palopoli et al. 2009). Smoother, and right where execution times
/// are spread evenly; wasteful where they come in two sizes, as I and P frames do.
pub(super) fn mean_sigma(demand: &Demand, parameters: &Parameters) -> Option<Span> {
    let mean = demand.mean()?;
    let variance = demand
        .recent()
        .map(|executed| (executed.abs_diff(mean).as_ns() as f64).powi(2))
        .sum::<f64>()
        / demand.len() as f64;
    let sigma = Span::from_ns(variance.sqrt().round() as u64);
    let predicted = mean + sigma.scale(parameters.sigmas);
    let predicted = predicted.scale(1.0 + parameters.spread.max(0.0));
    Some(predicted.scale(generosity(demand.len(), parameters.window)))
}
