//! What a figure is over many runs: one film is luck.

use serde::Serialize;

/// A figure over many runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    /// The standard deviation from run to run; zero where there was one run.
    pub(crate) deviation: f64,
    /// The figure of the first run, which a test can make again.
    pub(crate) first: f64,
}

impl Spread {
    /// The spread of a figure of each run; zero if there was no run.
    pub(crate) fn of(figures: &[f64]) -> Self {
        let count = figures.len().max(1) as f64;
        let mean = figures.iter().sum::<f64>() / count;
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        Self {
            mean,
            deviation,
            first: figures.first().copied().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_mean_and_the_deviation_of_a_sample() {
        let spread = Spread::of(&[2.0, 4.0, 6.0]);
        assert_eq!((spread.mean, spread.deviation), (4.0, 2.0));
        let one = Spread::of(&[3.0]);
        assert_eq!((one.mean, one.deviation), (3.0, 0.0));
        assert_eq!(Spread::of(&[]), Spread::default());
    }
}
