//! Moving average plus k standard deviations of the last jobs' execution times.
//!
//! The textbook rival of the percentile (named in LFS++, section 5.3, by way of Palopoli et al.
//! 2009): smoother, and right where execution times are spread evenly; wasteful where they come in
//! two sizes, as I and P frames do.

use onbeat_model::{Demand, Span};

use super::{Parameters, generosity};

pub(super) fn rule(demand: &Demand, parameters: &Parameters) -> Option<Span> {
    let mean = demand.mean()?;
    let variance = demand
        .recent()
        .map(|executed| (executed.abs_diff(mean).as_ns() as f64).powi(2))
        .sum::<f64>()
        / demand.len() as f64;
    let sigma = Span::from_ns(variance.sqrt().round() as u64);
    let predicted = mean + sigma.scale(parameters.sigmas);
    let predicted = predicted.scale(1.0 + parameters.spread.max(0.0));
    Some(predicted.scale(generosity(demand.len(), parameters.window)))
}
