//! The policy's record of a task.

use onbeat_model::{Demand, Instant, Speed};
use onbeat_policies::grace as rules;

use super::{GraceClass, GraceSettings};
use crate::CpuIndex;

#[derive(Debug)]
pub(super) struct GraceTask {
    pub(super) rules: rules::Task,
    pub(super) class: GraceClass,
    pub(super) cpu: CpuIndex,
    pub(super) queued: Option<u64>,
    pub(super) gone: bool,
    pub(super) jobs: usize,
    pub(super) demand: Demand,
    pub(super) job: LastJob,
    pub(super) claim: ReclaimedShare,
}

#[derive(Debug, Default)]
pub(super) struct LastJob {
    pub(super) under_way: bool,
    pub(super) overran: bool,
    pub(super) demand_ns: u64,
}

/// Its claim on the CPU where unused budgets are reclaimed.
#[derive(Debug, Default)]
pub(super) struct ReclaimedShare {
    /// When its budget, at the rate that is promised to it, would have been used up so far.
    pub(super) zero_lag: Instant,
    pub(super) share: u64,
}

impl GraceTask {
    pub(super) fn new(
        class: GraceClass,
        cpu: CpuIndex,
        settings: &GraceSettings,
        full: Speed,
    ) -> Self {
        let mut rules = rules::Task::default();
        if let GraceClass::RealTime { period, .. } = class {
            let full = rules::Point {
                after: 0,
                speed: full.as_khz(),
            };
            rules.set_plan(&rules::Plan::new(period.as_ns(), 0, [full]));
        }
        Self {
            rules,
            class,
            cpu,
            queued: None,
            gone: false,
            jobs: 0,
            demand: Demand::new(settings.window),
            job: LastJob::default(),
            claim: ReclaimedShare::default(),
        }
    }

    pub(super) fn find_zero_lag(&mut self) {
        let (left, budget) = (self.rules.left(), self.rules.plan().budget().max(1));
        if let GraceClass::RealTime { period, .. } = self.class {
            let unused = period.scale(left as f64 / budget as f64);
            let end = Instant::from_ns(self.rules.period_end_ns());
            self.claim.zero_lag = Instant::ZERO + (end.since(Instant::ZERO) - unused);
        }
    }

    /// The possible demand of the job that is under way, or that of the last one; where `in_use`,
    /// the budget until its zero-lag time and then nothing.
    pub(super) fn claim(&self, in_use: bool, now: Instant) -> u64 {
        match self.class {
            GraceClass::RealTime { period, .. } if !self.gone && self.rules.plan().budget() > 0 => {
                let budget = self.rules.plan().budget();
                let work = match (self.job.under_way, in_use) {
                    (true, _) => budget,
                    (false, false) => self.job.demand_ns,
                    (false, true) if self.claim.zero_lag > now => budget,
                    (false, true) => 0,
                };
                rules::share(work, period.as_ns())
            }
            _ => 0,
        }
    }
}
