//! The demand of the next job, by the last ones: the distribution around a forecast is narrower
//! than that of all jobs.
//!
//! A film has scenes, and pictures of three kinds in a group that repeats; so what a job demands is
//! much like what the jobs just before it did, or the job one group before. Several simple rules
//! forecast side by side. Each rule's error so far is kept, and the forecast is the geometric mean
//! of all, weighted by an exponential of these errors (the exponentially weighted average
//! forecaster: Cesa-Bianchi and Lugosi, Prediction, Learning, and Games, 2006, section 2.1): where
//! demands have noise of their own, several rules miss less together than the best of them. By
//! which factors the last jobs missed it is the distribution of the next demand, times the
//! forecast.
//!
//! GRACE-OS asks for the distribution of all jobs of a window, and notices a new scene when the
//! window has moved on.

use std::collections::VecDeque;

use onbeat_model::{Demand, Span};

/// The jobs whose mean is the level that a season's change is seen by.
const LEVEL: usize = 3;
/// The lengths of the means among the rules, up to a group of pictures.
const MEANS: [usize; 5] = [1, 2, 4, 8, 16];
/// The longest group of jobs that is found: each length is a rule, which costs time in each job.
const LONGEST: usize = 24;
/// The weight of a new error: about the last 30 count.
const WEIGHT: f64 = 0.03;
/// How much less a rule counts whose error is larger than the least, by that in shares of it.
const SHARPNESS: f64 = 4.0;
/// No error is less, so that a rule that has not erred yet is comparable: one interrupt adds more
/// to a job than a thousandth.
const LEAST_ERROR: f64 = 1e-3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForecastRule {
    /// The mean of the last `n` jobs.
    Mean(usize),
    /// The job `n` before, and half of the way (as a factor) that the level has gone since.
    Season(usize),
}

#[derive(Clone, Debug)]
pub struct Forecast {
    recent: VecDeque<f64>,
    rules: Vec<RatedRule>,
    /// Demand over forecast, in millionths.
    factors: Demand,
}

#[derive(Clone, Debug)]
struct RatedRule {
    rule: ForecastRule,
    /// The mean of the logarithm's size, recent ones more; none before the first forecast.
    error: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
pub struct NextDemand<'a> {
    pub demand: Span,
    /// By which factors, in millionths, the last jobs' demands were other than forecast.
    pub factors: &'a Demand,
}

/// As what a factor of one is kept.
pub const ONE: Span = Span::from_ns(1_000_000);

impl Forecast {
    /// The forecaster of a task without a job yet; factors are those of the last `window` jobs.
    pub fn new(window: usize) -> Self {
        let means = MEANS.into_iter().map(ForecastRule::Mean);
        let seasons = (2..=LONGEST).map(ForecastRule::Season);
        let kept = |rule| RatedRule { rule, error: None };
        Self {
            recent: VecDeque::new(),
            rules: means.chain(seasons).map(kept).collect(),
            factors: Demand::new(window),
        }
    }

    pub fn record(&mut self, demand: Span) {
        let demand = demand.as_ns().max(1) as f64;
        if let Some(forecast) = self.together() {
            self.factors.record(ONE.scale(demand / forecast));
        }
        for kept in &mut self.rules {
            let Some(forecast) = kept.rule.forecast(&self.recent) else {
                continue;
            };
            let error = (demand / forecast).ln().abs();
            let before = kept.error.unwrap_or(error);
            kept.error = Some(before + (error - before) * WEIGHT);
        }
        if self.recent.len() >= LONGEST + LEVEL {
            self.recent.pop_front();
        }
        self.recent.push_back(demand);
    }

    /// The next job's forecast; none before the third job.
    pub fn next(&self) -> Option<NextDemand<'_>> {
        let demand = self.together().filter(|_| !self.factors.is_empty())?;
        Some(NextDemand {
            demand: Span::from_ns(demand.round() as u64),
            factors: &self.factors,
        })
    }

    fn together(&self) -> Option<f64> {
        let errors = self.rules.iter().filter_map(|kept| kept.error);
        let least = errors.min_by(f64::total_cmp)?.max(LEAST_ERROR);
        let (mut sum, mut weights) = (0.0, 0.0);
        for RatedRule { rule, error } in &self.rules {
            if let (Some(error), Some(forecast)) = (error, rule.forecast(&self.recent)) {
                let weight = (-SHARPNESS * (error / least - 1.0)).exp();
                sum += weight * forecast.ln();
                weights += weight;
            }
        }
        // The best rule's weight is one or more.
        Some((sum / weights).exp())
    }
}

impl ForecastRule {
    fn forecast(self, recent: &VecDeque<f64>) -> Option<f64> {
        let count = recent.len();
        let mean = |to: usize, of: usize| {
            let from = to.checked_sub(of)?;
            Some(recent.range(from..to).sum::<f64>() / of as f64)
        };
        match self {
            Self::Mean(of) => mean(count, of),
            Self::Season(group) => {
                let before = count.checked_sub(group)?;
                let change = mean(count, LEVEL)? / mean(before, LEVEL)?;
                Some(recent.get(before)? * change.sqrt())
            }
        }
    }
}

#[cfg(test)]
mod tests;
