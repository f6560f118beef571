//! Predictors that only papers and experiments need, beside those of `onbeat-decide`.

mod binary;
mod rate;

use onbeat_decide::predictor::{
    BuildPredictor, Parameters, Percentile, Predictor, Windowed, generosity, statistical,
};
use onbeat_model::{Demand, Span};

pub use binary::{Binary, BinarySteps};
pub use rate::Rate;

/// Those that onbeat's loop can go by in a scenario, by their names; the first is its own.
pub const NAMED: [(&str, BuildPredictor); 4] = [
    ("percentile", Percentile::build),
    ("mean-sigma", |parameters| mean_sigma(parameters, 3.0)),
    ("binary", |_| Box::new(Binary::new(BinarySteps::default()))),
    ("statistical", statistical),
];

/// The moving average plus standard deviations: the textbook rival of the percentile (named in
/// LFS++, section 5.3, by way of Palopoli et al. 2009). Smoother, and right where execution times
/// are spread evenly; wasteful where they come in two sizes, as I and P frames do.
#[must_use]
pub fn mean_sigma(parameters: Parameters, sigmas: f64) -> Box<dyn Predictor> {
    let rule = move |demand: &Demand, parameters: &Parameters| {
        let mean = demand.mean()?;
        let variance = demand
            .recent()
            .map(|executed| (executed.abs_diff(mean).as_ns() as f64).powi(2))
            .sum::<f64>()
            / demand.len() as f64;
        let sigma = Span::from_ns(variance.sqrt().round() as u64);
        let predicted = mean + sigma.scale(sigmas);
        let predicted = predicted.scale(1.0 + parameters.spread.max(0.0));
        Some(predicted.scale(generosity(demand.len(), parameters.window)))
    };
    Box::new(Windowed::new(rule, parameters))
}

#[cfg(test)]
mod tests;
