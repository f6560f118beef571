//! The tables that the service's configuration and `--config` of `run` have in common.

use std::ops::RangeInclusive;

use onbeat_control::{AllocationSettings, EstimationSettings};
use onbeat_decide::predictor::{BuildPredictor, Parameters, Percentile, statistical};
use onbeat_decide::supervisor::Limits as Defaults;
use onbeat_model::Bandwidth;
use serde::Deserialize;
use toml::Spanned;

use super::error::{ConfigError, Place};
use super::values::Share;

/// The jobs whose demands make a distribution. GRACE-OS, section 4.3.
const PROFILED_JOBS: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub struct Budgets {
    /// The most that all reservations together may take, as a share of all CPUs.
    pub total: f64,
    pub per_task: Bandwidth,
    /// The bandwidth that each periodic thread gets under overload.
    pub minimum: Bandwidth,
    /// How budgets are predicted.
    pub parameters: Parameters,
    /// Share of the jobs that stay within their budget, where the speed follows from the budgets.
    pub rho: Bandwidth,
    samples: Option<usize>,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            total: Defaults::DEFAULT_TOTAL,
            per_task: Bandwidth::from_cpus(Defaults::DEFAULT_PER_TASK),
            minimum: Bandwidth::from_cpus(0.01),
            parameters: Parameters::default(),
            rho: Bandwidth::from_cpus(0.95),
            samples: None,
        }
    }
}

impl Budgets {
    /// How budgets are predicted; where the CPUs' speed `follows` from them, as GRACE-OS does.
    #[must_use]
    pub fn estimation(&self, follows: bool) -> EstimationSettings {
        let mut parameters = self.parameters;
        let mut predictor: BuildPredictor = Percentile::build;
        if follows {
            predictor = statistical;
            parameters.window = self.samples.unwrap_or(PROFILED_JOBS);
            parameters.overruns = 1.0 - self.rho.as_cpus();
        }
        EstimationSettings {
            predictor,
            parameters,
        }
    }

    pub fn allocation(&self) -> AllocationSettings {
        AllocationSettings {
            total: self.total,
            per_task: self.per_task,
            minimum: self.minimum,
        }
    }
}

/// `[limits]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LimitsTable {
    total: Option<Spanned<Share>>,
    per_task: Option<Spanned<Share>>,
    minimum: Option<Spanned<Share>>,
}

/// `[prediction]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Prediction {
    samples: Option<Spanned<usize>>,
    above: Option<Spanned<usize>>,
    spread: Option<Spanned<f64>>,
    rho: Option<Spanned<Share>>,
}

/// `value`, or the `remedy` with its line if it is out of `range`.
pub(super) fn within<T: PartialOrd>(
    value: Spanned<T>,
    range: RangeInclusive<T>,
    at: impl Fn(usize) -> Place,
    remedy: &str,
) -> Result<T, ConfigError> {
    if range.contains(value.get_ref()) {
        return Ok(value.into_inner());
    }
    Err(at(value.span().start).wrong(remedy.to_owned()))
}

fn part(share: Spanned<Share>, at: impl Fn(usize) -> Place) -> Result<Bandwidth, ConfigError> {
    let all = Share(Bandwidth::ZERO)..=Share(Bandwidth::ONE);
    let remedy = "more than everything: write at most \"100%\"";
    let share = within(share, all, at, remedy)?;
    Ok(share.0)
}

impl LimitsTable {
    /// Changes `budgets` as this table says; `at` finds the line of a byte.
    /// Fails if a share is more than everything.
    pub fn put_into(
        self,
        budgets: &mut Budgets,
        at: impl Fn(usize) -> Place,
    ) -> Result<(), ConfigError> {
        if let Some(share) = self.total {
            budgets.total = part(share, &at)?.as_cpus();
        }
        if let Some(share) = self.per_task {
            budgets.per_task = part(share, &at)?;
        }
        if let Some(share) = self.minimum {
            budgets.minimum = part(share, &at)?;
        }
        Ok(())
    }
}

impl Prediction {
    /// Changes `budgets` as this table says; `at` finds the line of a byte.
    /// Fails if a number is out of its range.
    pub fn put_into(
        self,
        budgets: &mut Budgets,
        at: impl Fn(usize) -> Place,
    ) -> Result<(), ConfigError> {
        let parameters = &mut budgets.parameters;
        if let Some(samples) = self.samples {
            parameters.window = within(samples, 1..=4096, &at, "write 1 to 4096 samples")?;
            budgets.samples = Some(parameters.window);
        }
        if let Some(above) = self.above {
            let place = at(above.span().start);
            parameters.above = above.into_inner();
            if parameters.above >= parameters.window {
                return Err(place.wrong(format!(
                    "of {} samples, write at most {} that may need more",
                    parameters.window,
                    parameters.window - 1
                )));
            }
        }
        if let Some(spread) = self.spread {
            let remedy = "write a spread from 0 to 10, as in 0.1";
            parameters.spread = within(spread, 0.0..=10.0, &at, remedy)?;
            parameters.widest_spread = parameters.widest_spread.max(parameters.spread);
        }
        if let Some(rho) = self.rho {
            budgets.rho = part(rho, &at)?;
        }
        // Fewer samples than before, and nothing said about those above: as many as can be.
        parameters.above = parameters.above.min(parameters.window - 1);
        Ok(())
    }
}
