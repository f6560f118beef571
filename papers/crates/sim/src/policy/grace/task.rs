//! The policy's record of a task.

use crate::stochastic::forecast::{self, Forecast};
use crate::stochastic::joint::Outlook;
use crate::stochastic::{Allowance, Margin};
use onbeat_model::{Demand, Instant, Span, Speed};
use onbeat_policies::grace as rules;

use super::{GraceClass, GraceKey, GraceSettings, Scheme};
use crate::CpuIndex;

#[derive(Debug)]
pub(super) struct GraceTask {
    pub(super) rules: rules::Task,
    pub(super) class: GraceClass,
    pub(super) cpu: CpuIndex,
    pub(super) queued: Option<GraceKey>,
    pub(super) gone: bool,
    pub(super) jobs: usize,
    pub(super) demand: Demand,
    pub(super) job: LastJob,
    pub(super) promise: Promise,
    pub(super) claim: ReclaimedShare,
}

#[derive(Debug, Default)]
pub(super) struct LastJob {
    pub(super) released: Instant,
    pub(super) under_way: bool,
    pub(super) overran: bool,
    /// The budget that its period began with.
    pub(super) held: Span,
    pub(super) demand_ns: u64,
}

/// The grounds for the next job's budget and speed, where the scheme looks at them.
#[derive(Debug)]
pub(super) struct Promise {
    pub(super) outlook: Option<Outlook>,
    pub(super) forecast: Option<Forecast>,
    pub(super) allowance: Allowance,
    pub(super) margin: Option<Margin>,
    /// The grant when all tasks were looked at.
    pub(super) lasting: Span,
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
        let mut rho = settings.rho;
        if let GraceClass::RealTime { period, rho: own } = class {
            rho = own.unwrap_or(rho);
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
            promise: Promise {
                outlook: None,
                forecast: (settings.scheme == Scheme::JointForecast)
                    .then(|| Forecast::new(settings.window)),
                allowance: Allowance::new(rho),
                margin: settings.margin.then(|| Margin::new(rho)),
                lasting: Span::ZERO,
            },
            claim: ReclaimedShare::default(),
        }
    }

    pub(super) fn learns_margin(&mut self, demand: Span) -> bool {
        let budget = Span::from_ns(self.rules.plan().budget());
        let Some(margin) = self.promise.margin.as_mut().filter(|_| !budget.is_zero()) else {
            return false;
        };
        let overran = demand > budget;
        margin.job(overran);
        overran
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

    /// The share of its CPU that is promised to it, now and in its next period.
    pub(super) fn promised(&self) -> f64 {
        match self.class {
            GraceClass::RealTime { period, .. } if !self.gone => {
                let next = Span::from_ns(self.rules.plan().budget());
                next.max(self.job.held).ratio(period)
            }
            _ => 0.0,
        }
    }

    /// The budget and the outlook of its next job, after the last one took `demand` and ended
    /// `now`. Others are promised a share `others` of the CPU: it gets more than what is left of it
    /// only if that is its lasting budget.
    pub(super) fn predict(
        &mut self,
        demand: Span,
        now: Instant,
        others: f64,
        settings: &GraceSettings,
    ) {
        let (Some(forecast), GraceClass::RealTime { period, .. }) =
            (&mut self.promise.forecast, self.class)
        else {
            return;
        };
        forecast.record(demand);
        if self.jobs < settings.profile {
            return;
        }
        self.promise.allowance.job(now > self.job.released + period);
        let Some(next) = forecast.next() else { return };
        let factor = next.demand.ratio(forecast::ONE);
        let Some(budget) = next.factors.quantile(self.promise.allowance.within()) else {
            return;
        };
        let most = period
            .scale((1.0 - others).max(0.0))
            .max(self.promise.lasting);
        let budget = budget
            .scale(factor)
            .clamp(Span::from_ns(1), most.max(Span::from_ns(1)));
        self.promise.outlook = Some(Outlook::new(next.factors.sorted(), factor, budget));
        let plan = rules::Plan::new(period.as_ns(), budget.as_ns(), []);
        self.rules.set_plan(&plan);
    }
}
