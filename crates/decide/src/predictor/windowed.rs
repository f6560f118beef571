//! A predictor that plans anew with every job, and from nothing but the window of the last jobs'
//! demands: what is left to say of one is its rule.

use onbeat_model::{Demand, Instant, Job, Reservation, Span};

use super::catch_up::CatchUp;
use super::{Pace, Parameters, Predictor};

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
