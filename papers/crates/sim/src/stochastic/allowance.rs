//! How probable a demand beyond the budget may be, learnt from the deadlines that were missed.
//!
//! A budget that a share rho of the *last* jobs stayed within is not one that a share rho of the
//! *next* ones does: demands change, and a job within its budget waits behind another's overrun. So
//! the probability is corrected after every job, down by a step for a miss, up by a small part of
//! it otherwise, so that it stays where it is if the share of misses is the wanted one (adaptive
//! conformal inference: Gibbs and Candès, NeurIPS 2021). Over n jobs the share of misses is at most
//! the wanted one and 1 / (step n), whatever the demands are, as long as a budget for the worst
//! case of the window misses nothing.

use super::AIM;

/// The weight of a miss: 250 of them in a row lead from `MOST` to nothing.
const STEP: f64 = 0.002;
/// No budget is for less than half of the jobs.
const MOST: f64 = 0.5;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    aim: f64,
    beyond: f64,
}

impl Allowance {
    /// So that a share of `rho` of the deadlines is met.
    pub fn new(rho: f64) -> Self {
        let allowed = (1.0 - rho).clamp(0.0, 1.0);
        Self {
            aim: allowed * AIM,
            beyond: allowed.min(MOST),
        }
    }

    pub fn job(&mut self, missed: bool) {
        let missed = if missed { 1.0 } else { 0.0 };
        self.beyond = (self.beyond + STEP * (self.aim - missed)).clamp(0.0, MOST);
    }

    /// The share of jobs that the next budget is to be enough for.
    pub fn within(&self) -> f64 {
        1.0 - self.beyond
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::{Demand, Span};

    use super::*;

    #[test]
    fn the_share_of_misses_is_bounded_though_demands_never_stop_growing() {
        // Each window's quantile is too small for the jobs behind it: at a fixed 95% most would
        // miss.
        let (mut fixed, mut adapted) = (0, 0);
        let jobs = 20_000;
        let mut window = Demand::new(100);
        let mut allowance = Allowance::new(0.95);
        for n in 0..jobs {
            let demand = Span::from_ns(1000 + n / 10 + (n * 7919) % 40);
            let within = |share| {
                window
                    .quantile(share)
                    .is_some_and(|budget| demand <= budget)
            };
            fixed += u64::from(!within(0.95));
            let missed = !within(allowance.within());
            adapted += u64::from(missed);
            allowance.job(missed);
            window.record(demand);
        }
        assert!(fixed * 100 > jobs * 12, "{fixed}");
        assert!(adapted * 100 <= jobs * 5, "{adapted}");
    }
}
