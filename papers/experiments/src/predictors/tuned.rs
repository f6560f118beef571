//! Every predictor, with every tuning that is tried.

use onbeat_decide::predictor::{Parameters, Percentile, Predictor, statistical};
use onbeat_lfspp::predictor::{Binary, BinarySteps, Pattern, Rate, mean_sigma};
use onbeat_model::{Demand, Instant, Job, Reservation, Span};

use super::PredictorPoint;
use super::demands::Demands;
use super::simulation::{Scene, play};

/// A family of predictors, and what they are tuned with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tuned {
    pub(super) family: &'static str,
    kind: Kind,
    parameters: Parameters,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Percentile,
    Rate {
        is_raised: bool,
    },
    /// How many standard deviations.
    MeanSigma(f64),
    Statistical,
    Binary(BinarySteps),
    Pattern,
    /// A budget that is set by hand, stays, and is enough for this share of all jobs.
    ByHand(f64),
}

/// A budget that an administrator who knows all jobs sets once.
struct ByHand(Span);

impl Predictor for ByHand {
    fn job(&mut self, _job: &Job, _demand: &Demand) {}

    fn exhausted(&mut self, _at: Instant, _held: Reservation) {}

    fn rate_changed(&mut self, _period: Span) {}

    fn speed_changed(&mut self, _factor: f64) {}

    fn runtime(&self, period: Span) -> Option<Span> {
        Some(self.0.min(period))
    }
}

/// The paper's rate, which is told at a job's end what was executed since the last sample.
struct SampledRate {
    rate: Rate,
    sampled: Instant,
    executed: Span,
}

impl Predictor for SampledRate {
    fn job(&mut self, job: &Job, demand: &Demand) {
        self.rate.job(job, demand);
        self.executed += job.executed;
        let over = job.woke.since(self.sampled);
        if over >= Rate::SAMPLING {
            self.rate.sampled(std::mem::take(&mut self.executed), over);
            self.sampled = job.woke;
        }
    }

    fn exhausted(&mut self, at: Instant, held: Reservation) {
        self.rate.exhausted(at, held);
    }

    fn rate_changed(&mut self, period: Span) {
        self.rate.rate_changed(period);
    }

    fn speed_changed(&mut self, factor: f64) {
        self.rate.speed_changed(factor);
    }

    fn runtime(&self, period: Span) -> Option<Span> {
        self.rate.runtime(period)
    }
}

impl Tuned {
    pub(super) fn all() -> Vec<Self> {
        let usual = Parameters::default();
        let mut all = Vec::new();
        let mut add = |family, kind, parameters| {
            all.push(Self {
                family,
                kind,
                parameters,
            });
        };
        const OVERRUNS: [f64; 5] = [0.001, 0.003, 0.01, 0.03, 0.1];
        for window in [4, 8, 16, 32, 64] {
            for spread in [0.0, 0.05, 0.1, 0.2, 0.3, 0.5] {
                let parameters = Parameters {
                    window,
                    spread,
                    ..usual
                };
                for above in [0, 1] {
                    let fixed = Parameters {
                        above,
                        widest_spread: spread,
                        ..parameters
                    };
                    add("percentile, fixed spread", Kind::Percentile, fixed);
                }
                for (family, is_raised) in [("rate (LFS++)", false), ("rate, raised at once", true)]
                {
                    add(family, Kind::Rate { is_raised }, parameters);
                }
            }
            for sigmas in [0.0, 1.0, 2.0, 3.0, 4.0, 6.0] {
                let parameters = Parameters { window, ..usual };
                add("mean-sigma", Kind::MeanSigma(sigmas), parameters);
            }
            for overruns in OVERRUNS {
                for widest_spread in [1.0, 3.0] {
                    let learnt = Parameters {
                        window,
                        overruns,
                        widest_spread,
                        ..usual
                    };
                    add(super::DEFAULT, Kind::Percentile, learnt);
                }
            }
        }
        for rho in [0.5, 0.8, 0.9, 0.95, 0.97, 0.99, 0.995] {
            for window in [50, 100, 400] {
                let parameters = Parameters {
                    window,
                    overruns: 1.0 - rho,
                    ..usual
                };
                add("statistical (GRACE-OS)", Kind::Statistical, parameters);
            }
        }
        for raise in [0.1, 0.25, 0.5] {
            for lower in [0.001, 0.003, 0.01, 0.03] {
                let steps = BinarySteps { raise, lower };
                add("binary (LFS)", Kind::Binary(steps), usual);
            }
        }
        for overruns in OVERRUNS {
            for widest_spread in [1.0, 3.0] {
                let parameters = Parameters {
                    overruns,
                    widest_spread,
                    ..usual
                };
                add("pattern", Kind::Pattern, parameters);
            }
        }
        for share in [0.5, 0.8, 0.9, 0.95, 0.97, 0.99, 0.995, 0.999, 1.0] {
            add("by hand", Kind::ByHand(share), usual);
        }
        all
    }

    fn predictor(&self, demands: &Demands) -> Box<dyn Predictor> {
        let parameters = self.parameters;
        match self.kind {
            Kind::Percentile => Percentile::build(parameters),
            Kind::Rate { is_raised } => Box::new(SampledRate {
                rate: Rate::new(parameters, Rate::SAMPLING, is_raised),
                sampled: Instant::ZERO + Span::from_secs(1),
                executed: Span::ZERO,
            }),
            Kind::MeanSigma(sigmas) => mean_sigma(parameters, sigmas),
            Kind::Statistical => statistical(parameters),
            Kind::Binary(steps) => Box::new(Binary::new(steps)),
            // The server tells each job when it ends.
            Kind::Pattern => Pattern::of_told_jobs(parameters),
            Kind::ByHand(share) => {
                let mut all = Demand::new(demands.jobs.len());
                demands.jobs.iter().for_each(|job| all.record(*job));
                Box::new(ByHand(all.quantile(share).unwrap_or_default()))
            }
        }
    }

    /// The family's predictor as it comes.
    pub(super) fn is_default(&self) -> bool {
        let mut usual = Parameters::default();
        let is_usual = match self.kind {
            Kind::ByHand(_) => false,
            Kind::MeanSigma(sigmas) => sigmas == 3.0,
            Kind::Binary(steps) => steps == BinarySteps::default(),
            Kind::Statistical => {
                (usual.window, usual.overruns) = (100, 1.0 - 0.95);
                true
            }
            Kind::Percentile | Kind::Rate { .. } | Kind::Pattern => true,
        };
        is_usual && self.parameters == usual
    }

    fn told(&self) -> String {
        let p = &self.parameters;
        match self.kind {
            Kind::ByHand(share) => format!("enough for {}%", share * 100.0),
            Kind::Binary(steps) => format!("+{}, -{}", steps.raise, steps.lower),
            Kind::Statistical => format!("N = {}, rho = {:.3}", p.window, 1.0 - p.overruns),
            Kind::MeanSigma(sigmas) => format!("N = {}, {sigmas} sigma", p.window),
            Kind::Pattern => format!("overruns {}, x up to {}", p.overruns, p.widest_spread),
            Kind::Percentile if p.widest_spread > p.spread => format!(
                "N = {}, overruns {}, x up to {}",
                p.window, p.overruns, p.widest_spread
            ),
            Kind::Percentile | Kind::Rate { .. } => {
                format!("N = {}, j = {}, x = {}", p.window, p.above, p.spread)
            }
        }
    }

    pub(super) fn on(&self, demands: &Demands) -> PredictorPoint {
        let scene = Scene {
            window: self.parameters.window,
            ..Scene::of(demands.period, demands.jobs.clone())
        };
        let outcome = play(&scene, &mut *self.predictor(demands));
        PredictorPoint {
            demands: demands.name,
            family: self.family,
            tuned: self.told(),
            is_default: self.is_default(),
            miss_ratio: outcome.misses,
            reserved_over_used: outcome.reserved_over_used,
        }
    }
}
