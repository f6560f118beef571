//! What the next job will demand, by the last ones: the distribution around a forecast is narrower than that of all jobs.
//!
//! A film has scenes, and pictures of three kinds in a group that repeats; so what a job demands is much like what the jobs just
//! before it did, or the job one group before. Several simple rules forecast side by side, and of each it is kept by which
//! factor the last jobs missed its forecast. The rule with the least error so far is believed, and the distribution of the next
//! demand is that of its factors, times its forecast.
//!
//! GRACE-OS asks for the distribution of all jobs of a window, and notices a new scene when the window has moved on.

use std::collections::VecDeque;

use onbeat_model::{Demand, Span};

/// A way to forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The mean of so many jobs.
    Mean(usize),
    /// The job so many before, and half of the way (as a factor) that the level has gone since.
    Season(usize),
}

/// The level that a season's change is seen by: the mean of so many jobs.
const LEVEL: usize = 3;
const MEANS: [usize; 5] = [1, 2, 4, 8, 16];
/// The longest group of jobs that is found.
const LONGEST: usize = 24;
/// How much a new error counts.
const WEIGHT: f64 = 0.03;

/// The forecasts of one task.
#[derive(Clone, Debug)]
pub struct Forecast {
    recent: VecDeque<f64>,
    rules: Vec<Kept>,
}

#[derive(Clone, Debug)]
struct Kept {
    rule: Rule,
    /// Demand over forecast, in millionths.
    factors: Demand,
    /// The mean of the logarithm's size, recent ones more.
    error: f64,
}

/// One forecast.
#[derive(Clone, Copy, Debug)]
pub struct Next<'a> {
    /// What is forecast.
    pub demand: Span,
    /// By which factors, in millionths, the last jobs' demands were other than forecast.
    pub factors: &'a Demand,
}

/// As what a factor of one is kept.
pub const ONE: Span = Span::from_ns(1_000_000);

impl Forecast {
    /// Of a task without a job yet; factors are those of the last `window` jobs.
    #[must_use]
    pub fn new(window: usize) -> Self {
        let means = MEANS.into_iter().map(Rule::Mean);
        let seasons = (2..=LONGEST).map(Rule::Season);
        let kept = |rule| Kept {
            rule,
            factors: Demand::new(window),
            error: 0.0,
        };
        Self {
            recent: VecDeque::new(),
            rules: means.chain(seasons).map(kept).collect(),
        }
    }

    /// The next job has demanded this.
    pub fn record(&mut self, demand: Span) {
        let demand = demand.as_ns().max(1) as f64;
        for kept in &mut self.rules {
            let Some(forecast) = kept.rule.forecast(&self.recent) else {
                continue;
            };
            let factor = demand / forecast;
            let error = factor.ln().abs();
            let first = kept.factors.is_empty();
            kept.error += (error - kept.error) * if first { 1.0 } else { WEIGHT };
            kept.factors.record(ONE.scale(factor));
        }
        if self.recent.len() >= LONGEST + LEVEL {
            self.recent.pop_front();
        }
        self.recent.push_back(demand);
    }

    /// What comes next; none before the second job.
    #[must_use]
    pub fn next(&self) -> Option<Next<'_>> {
        let most = self.rules.iter().map(|kept| kept.factors.len()).max()?;
        // A rule that has seen less has not been tried enough.
        let tried = self
            .rules
            .iter()
            .filter(|kept| 2 * kept.factors.len() >= most.max(1));
        let best = tried.min_by(|a, b| a.error.total_cmp(&b.error))?;
        let demand = best.rule.forecast(&self.recent)?;
        Some(Next {
            demand: Span::from_ns(demand as u64),
            factors: &best.factors,
        })
    }
}

impl Rule {
    /// From the last jobs, the latest at the end.
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
mod tests {
    use super::*;

    fn forecast(jobs: impl IntoIterator<Item = u64>) -> Forecast {
        let mut forecast = Forecast::new(100);
        jobs.into_iter()
            .for_each(|us| forecast.record(Span::from_us(us)));
        forecast
    }

    /// Of the factors, the smallest and the largest but for `of` at both ends.
    fn spread(forecast: &Forecast, of: usize) -> f64 {
        let sorted = forecast.next().unwrap().factors.sorted();
        sorted[sorted.len() - 1 - of].ratio(sorted[of])
    }

    #[test]
    fn a_group_that_repeats_is_foretold_job_by_job() {
        let group = [9000, 2000, 3000, 5000, 2000, 3000, 2500];
        let jobs = group.into_iter().cycle().take(7 * 30);
        let forecast = forecast(jobs.chain([9000]));
        let next = forecast.next().unwrap();
        assert_eq!(next.demand, Span::from_us(2000));
        assert!(spread(&forecast, 0) < 1.0001);
    }

    #[test]
    fn a_new_level_is_foretold_after_a_few_jobs() {
        let noisy = |level: u64| (0..60).map(move |n| level + (n * 7919) % (level / 10));
        let forecast = forecast(noisy(2000).chain(noisy(6000).take(8)));
        let next = forecast.next().unwrap().demand;
        assert!(next > Span::from_us(5500), "{next}");
        assert!(spread(&forecast, 5) < 1.3);
    }

    #[test]
    fn nothing_is_foretold_from_nothing() {
        assert!(forecast([]).next().is_none());
        let constant = forecast([4000, 4000, 4000]);
        assert_eq!(constant.next().unwrap().demand, Span::from_us(4000));
        assert_eq!(constant.next().unwrap().factors.max(), Some(ONE));
    }

    #[test]
    fn a_job_of_nothing_is_no_division_by_it() {
        let forecast = forecast([0; 40]);
        assert_eq!(forecast.next().unwrap().demand, Span::from_ns(1));
    }
}
