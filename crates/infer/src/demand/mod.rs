//! Demand profiler: what a thread's last jobs took, as a distribution.
//!
//! The predictors of `decide` read quantiles of it (section 5.3 of the LFS++ paper, with jobs in
//! the place of sampling intervals), or its histogram (GRACE-OS, section 2.2). It counts time at
//! the present speed of the CPUs, which are cycles over that speed: each burst's CPU time counts by
//! the speed at its time.

use onbeat_model::{Demand, Job};

/// Keeps the execution times of a thread's last jobs.
///
/// Assumptions: 1. jobs come in order; 2. a thread runs on one CPU at a time, so a job that took
/// more CPU time than its period holds the work of several (a starved thread that catches up
/// without ever blocking shows one long burst). Only one period's worth of such a job is recorded:
/// no reservation can give more, and a larger number would say nothing about one job.
#[derive(Clone, Debug)]
pub struct Profiler {
    demand: Demand,
}

impl Profiler {
    /// Keeps at most `window` jobs (at least one).
    #[must_use]
    pub fn new(window: usize) -> Self {
        Self {
            demand: Demand::new(window),
        }
    }

    /// Takes in one finished job.
    pub fn hear(&mut self, job: &Job) {
        let period = job.deadline.since(job.release);
        self.demand.record(job.executed.min(period));
    }

    /// The distribution over the window.
    #[must_use]
    pub const fn demand(&self) -> &Demand {
        &self.demand
    }

    /// The CPUs have another speed now, at which every job takes `factor` times as long.
    pub fn speed_changed(&mut self, factor: f64) {
        self.demand.scale(factor);
    }

    /// Forgets every job: after a change of rate, the old ones tell nothing.
    pub fn clear(&mut self) {
        self.demand.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::{Burst, Instant, Span, TaskId};

    fn job(executed_ms: u64) -> Job {
        Job::of(
            &Burst::alone(
                TaskId::recorded(1),
                Instant::ZERO,
                Span::from_ms(executed_ms),
            ),
            Instant::ZERO,
            Instant::from_ns(40_000_000),
        )
    }

    #[test]
    fn the_distribution_is_that_of_the_last_jobs() {
        let mut profiler = Profiler::new(3);
        for ms in [9, 1, 3, 2] {
            profiler.hear(&job(ms));
        }
        let sorted = [1, 2, 3].map(Span::from_ms);
        assert_eq!(profiler.demand().sorted(), sorted);
        profiler.clear();
        assert!(profiler.demand().is_empty());
    }

    #[test]
    fn a_job_that_holds_the_work_of_several_counts_one_period() {
        let mut profiler = Profiler::new(3);
        profiler.hear(&job(400));
        assert_eq!(profiler.demand().max(), Some(Span::from_ms(40)));
    }
}
