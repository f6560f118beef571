//! By how much budgets are to be larger than the last jobs say, learnt from the jobs that overran.
//!
//! A share rho of the last jobs stayed within a statistical budget; of the next ones it is less
//! wherever demands grow, and for a job that is rare beside its scenes the window is always behind:
//! not even the worst case of the window is enough. So all demands of the distribution are
//! stretched by a factor, up by a step for each overrun, down by a small part of it for each other
//! job, so that it stays where it is if the share of overruns is the wanted one (as
//! [`Allowance`](super::Allowance) does with the probability, but a probability ends at the worst
//! case). It is never below one: the paper's budget.
//!
//! Over n jobs the share of overruns is at most the wanted one and ln(f) / (step n), where f is a
//! factor that no job overruns.

use super::AIM;

/// How much an overrun stretches: of 0.02 to 0.5 the least with which at most 5% overran of each of
/// the demands in `experiments/predictors/demands`, whole and every fourth job.
const STEP: f64 = 0.1;
/// The most that a budget is stretched by.
const MOST: f64 = 20.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    aim: f64,
    logarithm: f64,
}

impl Margin {
    /// So that a share of `rho` of the jobs stays within its budget.
    pub fn new(rho: f64) -> Self {
        Self {
            aim: (1.0 - rho).clamp(0.0, 1.0) * AIM,
            logarithm: 0.0,
        }
    }

    pub fn job(&mut self, overran: bool) {
        let overran = if overran { 1.0 } else { 0.0 };
        let moved = self.logarithm + STEP * (overran - self.aim);
        self.logarithm = moved.clamp(0.0, MOST.ln());
    }

    pub fn factor(&self) -> f64 {
        self.logarithm.exp()
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::{Demand, Span};

    use super::*;
    use crate::stochastic::Histogram;

    /// The shares of jobs that overrun a budget for 95% of the last 100, as it is and with a
    /// margin.
    fn overruns(jobs: impl Iterator<Item = u64>) -> (f64, f64) {
        let mut window = Demand::new(100);
        let mut margin = Margin::new(0.95);
        let (mut plain, mut stretched, mut count) = (0, 0, 0);
        for us in jobs {
            let demand = Span::from_us(us);
            if let Some(histogram) = Histogram::of(&window, 15) {
                let budget = |factor| histogram.clone().stretched(factor).budget(0.95).demand;
                plain += usize::from(demand > budget(1.0));
                let overran = demand > budget(margin.factor());
                stretched += usize::from(overran);
                margin.job(overran);
                count += 1;
            }
            window.record(demand);
        }
        let share = |of: usize| of as f64 / f64::from(count);
        (share(plain), share(stretched))
    }

    #[test]
    fn where_each_scene_is_harder_than_the_last_overruns_stay_within_what_is_allowed() {
        // Scenes of 40 jobs, each a fifth harder, and an easy one after six: the window is always
        // behind.
        let level =
            |scene: u64| 10_000 * 6_u64.pow((scene % 7) as u32) / 5_u64.pow((scene % 7) as u32);
        let job = |n: u64| level(n / 40) * (90 + n * 7919 % 20) / 100;
        let (plain, stretched) = overruns((0..4000).map(job));
        assert!(plain > 0.10, "{plain}");
        assert!(stretched <= 0.05, "{stretched}");
    }

    #[test]
    fn where_the_last_jobs_tell_the_next_no_budget_is_stretched_for_long() {
        let (plain, stretched) = overruns((0..4000).map(|n| 1000 + n * 7919 % 1000));
        assert!(plain <= 0.05, "{plain}");
        assert!(stretched <= plain, "{stretched}");
        let mut margin = Margin::new(0.95);
        margin.job(true);
        assert!(margin.factor() > 1.09);
        (0..25).for_each(|_| margin.job(false));
        assert_eq!(margin.factor(), 1.0);
    }
}
