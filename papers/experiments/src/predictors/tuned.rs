//! Every predictor, with every tuning that is tried.

use onbeat_decide::predictor::{Parameters, Predictor, PredictorKind, build};
use onbeat_model::{Demand, Instant, Job, Reservation, Span};

use super::PredictorPoint;
use super::demands::Demands;
use super::simulation::{Scene, play};

/// A family of predictors, and what they are tuned with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tuned {
    pub(super) family: &'static str,
    /// None: the budget is set by hand, and stays.
    pub(super) kind: Option<PredictorKind>,
    pub(super) parameters: Parameters,
    /// The share of all jobs that the budget set by hand is enough for.
    pub(super) by_hand: f64,
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

impl Tuned {
    pub(super) fn all() -> Vec<Self> {
        let usual = Parameters::default();
        let mut all = Vec::new();
        let mut add = |family, kind, parameters| {
            all.push(Self {
                family,
                kind: Some(kind),
                parameters,
                by_hand: 0.0,
            });
        };
        let with = |change: &dyn Fn(&mut Parameters)| {
            let mut parameters = usual;
            change(&mut parameters);
            parameters
        };
        const OVERRUNS: [f64; 5] = [0.001, 0.003, 0.01, 0.03, 0.1];
        for window in [4, 8, 16, 32, 64] {
            for spread in [0.0, 0.05, 0.1, 0.2, 0.3, 0.5] {
                let parameters = with(&|p| (p.window, p.spread) = (window, spread));
                for above in [0, 1] {
                    let fixed = Parameters {
                        above,
                        widest_spread: spread,
                        ..parameters
                    };
                    add("percentile, fixed spread", PredictorKind::Percentile, fixed);
                }
                add("rate (LFS++)", PredictorKind::Rate, parameters);
                let raised = Parameters {
                    rate_boost: usual.boost,
                    ..parameters
                };
                add("rate, raised at once", PredictorKind::Rate, raised);
            }
            for sigmas in [0.0, 1.0, 2.0, 3.0, 4.0, 6.0] {
                let parameters = with(&|p| (p.window, p.sigmas) = (window, sigmas));
                add("mean-sigma", PredictorKind::MeanSigma, parameters);
            }
            for overruns in OVERRUNS {
                for widest_spread in [1.0, 3.0] {
                    let learnt = Parameters {
                        window,
                        overruns,
                        widest_spread,
                        ..usual
                    };
                    add(super::DEFAULT, PredictorKind::Percentile, learnt);
                }
            }
        }
        for rho in [0.5, 0.8, 0.9, 0.95, 0.97, 0.99, 0.995] {
            for window in [50, 100, 400] {
                let parameters = with(&|p| (p.window, p.overruns) = (window, 1.0 - rho));
                add(
                    "statistical (GRACE-OS)",
                    PredictorKind::Statistical,
                    parameters,
                );
            }
        }
        for raise in [0.1, 0.25, 0.5] {
            for lower in [0.001, 0.003, 0.01, 0.03] {
                let parameters = with(&|p| (p.binary_raise, p.binary_lower) = (raise, lower));
                add("binary (LFS)", PredictorKind::Binary, parameters);
            }
        }
        for overruns in OVERRUNS {
            for widest in [1.0, 3.0] {
                let parameters =
                    with(&|p| (p.overruns, p.widest_spread, p.ahead) = (overruns, widest, 1));
                add("pattern", PredictorKind::Pattern, parameters);
            }
        }
        let shares = [0.5, 0.8, 0.9, 0.95, 0.97, 0.99, 0.995, 0.999, 1.0];
        all.extend(shares.map(|by_hand| Self {
            family: "by hand",
            kind: None,
            parameters: usual,
            by_hand,
        }));
        all
    }

    fn predictor(&self, demands: &Demands) -> Box<dyn Predictor> {
        match self.kind {
            Some(kind) => build(kind, self.parameters),
            None => {
                let mut all = Demand::new(demands.jobs.len());
                demands.jobs.iter().for_each(|job| all.record(*job));
                Box::new(ByHand(all.quantile(self.by_hand).unwrap_or_default()))
            }
        }
    }

    /// It is what `onbeat run` does without options, or with nothing but the predictor's name; or
    /// that with the raise.
    pub(super) fn is_default(&self) -> bool {
        let usual = match self.kind {
            None => return false,
            Some(PredictorKind::Statistical) => Parameters {
                window: 100,
                overruns: 1.0 - 0.95,
                ..Parameters::default()
            },
            // The server tells each job when it ends.
            Some(PredictorKind::Pattern) => Parameters {
                ahead: 1,
                ..Parameters::default()
            },
            Some(PredictorKind::Rate) => Parameters {
                rate_boost: self.parameters.rate_boost,
                ..Parameters::default()
            },
            Some(_) => Parameters::default(),
        };
        self.parameters == usual
    }

    fn told(&self) -> String {
        let p = &self.parameters;
        match self.kind {
            None => format!("enough for {}%", self.by_hand * 100.0),
            Some(PredictorKind::Binary) => format!("+{}, -{}", p.binary_raise, p.binary_lower),
            Some(PredictorKind::Statistical) => {
                format!("N = {}, rho = {:.3}", p.window, 1.0 - p.overruns)
            }
            Some(PredictorKind::MeanSigma) => format!("N = {}, {} sigma", p.window, p.sigmas),
            Some(PredictorKind::Pattern) => {
                format!("overruns {}, x up to {}", p.overruns, p.widest_spread)
            }
            Some(PredictorKind::Percentile) if p.widest_spread > p.spread => {
                format!(
                    "N = {}, overruns {}, x up to {}",
                    p.window, p.overruns, p.widest_spread
                )
            }
            Some(_) => format!("N = {}, j = {}, x = {}", p.window, p.above, p.spread),
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
