//! A figure over many runs: one film is luck.

use std::fmt;

use serde::Serialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    /// The standard deviation from run to run; zero where there was one run.
    pub(crate) deviation: f64,
}

impl Spread {
    pub(crate) fn of(figures: &[f64]) -> Self {
        let count = figures.len().max(1) as f64;
        let mean = figures.iter().sum::<f64>() / count;
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        Self { mean, deviation }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct MeanDeviation {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

impl MeanDeviation {
    pub(crate) fn of(figures: impl Iterator<Item = f64> + Clone) -> Self {
        let count = figures.clone().count().max(1) as f64;
        let mean = figures.clone().sum::<f64>() / count;
        let squares: f64 = figures.map(|figure| (figure - mean).powi(2)).sum();
        Self {
            mean,
            deviation: (squares / count).sqrt(),
        }
    }
}

impl fmt::Display for MeanDeviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        write!(f, "{:.digits$} ± {:.digits$}", self.mean, self.deviation)
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

    #[test]
    fn mean_and_deviation_are_of_all_figures() {
        let figures = MeanDeviation::of([2.0, 4.0].into_iter());
        assert_eq!((figures.mean, figures.deviation), (3.0, 1.0));
        assert_eq!(figures.to_string(), "3.0 ± 1.0");
        assert_eq!(format!("{figures:.0}"), "3 ± 1");
        assert_eq!(MeanDeviation::of([].into_iter()), MeanDeviation::default());
    }
}
