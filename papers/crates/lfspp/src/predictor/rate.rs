//! The paper's controller: Q = (1+x) P Pred(dW)/S (LFS++, section 5.3).
//!
//! dW is the CPU time of one sampling interval S, Pred the percentile p = (N-j)/N of the last N of
//! them. It knows no jobs, only a rate; so it smooths over jobs of different sizes, and answers a
//! change only after a whole interval. As the paper has it, it does not raise an exhausted runtime:
//! that is an addition. Until the first interval is over it goes by the jobs seen; the paper does
//! not say what the first runtime is.

use onbeat_decide::predictor::{CatchUp, Parameters, Predictor, generosity, percentile};
use onbeat_model::{Demand, Instant, Job, Reservation, Span};

pub struct Rate {
    parameters: Parameters,
    /// S.
    sampling: Span,
    is_raised: bool,
    samples: Demand,
    first_jobs: Option<Span>,
    catch_up: CatchUp,
}

impl Rate {
    /// S as the paper has it (section 7.3).
    pub const SAMPLING: Span = Span::from_secs(1);

    /// The CPU time is sampled each `sampling`. If it `is_raised`, an exhausted runtime is, by the
    /// parameters' boost.
    #[must_use]
    pub fn new(parameters: Parameters, sampling: Span, is_raised: bool) -> Self {
        Self {
            parameters,
            sampling,
            is_raised,
            samples: Demand::new(parameters.window),
            first_jobs: None,
            catch_up: CatchUp::default(),
        }
    }

    fn planned(&self, period: Span) -> Option<Span> {
        let predicted = match percentile(&self.samples, &self.parameters) {
            Some(work) => period.scale(work.ratio(self.sampling)),
            None => self.first_jobs?,
        };
        Some(predicted.scale(1.0 + self.parameters.spread.max(0.0)))
    }

    /// The thread executed for `executed` in the last sampling interval, which was `over` long.
    pub fn sampled(&mut self, executed: Span, over: Span) {
        if !over.is_zero() {
            let work = self.sampling.scale(executed.ratio(over));
            self.samples.record(work);
        }
    }
}

impl Predictor for Rate {
    fn job(&mut self, job: &Job, demand: &Demand) {
        self.catch_up.job(job, None);
        let generous = generosity(demand.len(), self.parameters.window);
        self.first_jobs = demand.max().map(|longest| longest.scale(generous));
    }

    fn exhausted(&mut self, at: Instant, held: Reservation) {
        if self.is_raised {
            self.catch_up.exhausted(at, held, &self.parameters);
        }
    }

    /// The rate predicted needs no new jobs: at another period it is another runtime.
    fn rate_changed(&mut self, _period: Span) {
        self.catch_up.clear();
    }

    /// As the paper has it (section 6.3): one sample, the one from which the projected budget
    /// follows.
    fn speed_changed(&mut self, factor: f64) {
        if let Some(work) = percentile(&self.samples, &self.parameters) {
            self.samples.clear();
            self.samples.record(work.scale(factor));
        }
        self.first_jobs = self.first_jobs.map(|longest| longest.scale(factor));
        self.catch_up.scale(factor);
    }

    fn runtime(&self, period: Span) -> Option<Span> {
        self.catch_up.over(self.planned(period), period)
    }
}
