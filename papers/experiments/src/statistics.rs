//! A figure over many runs: one film is luck.

use std::fmt;

pub(crate) fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len().max(1) as f64
}

/// The nearest-rank quantile of figures in any order; zero if there are none.
pub(crate) fn quantile(figures: &[f64], p: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (p * sorted.len() as f64).ceil() as usize;
    let found = sorted.get(rank.saturating_sub(1));
    found.copied().unwrap_or_default()
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

impl Spread {
    /// The mean and the standard deviation from run to run; zero where there was one run.
    pub(crate) fn of(sample: &[f64]) -> Self {
        Self::over(sample, (sample.len() as f64 - 1.0).max(1.0))
    }

    /// The same where the figures are not a sample, but all that there are.
    pub(crate) fn of_all(figures: &[f64]) -> Self {
        Self::over(figures, (figures.len() as f64).max(1.0))
    }

    fn over(figures: &[f64], freedom: f64) -> Self {
        let mean = mean(figures);
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        Self {
            mean,
            deviation: (squares / freedom).sqrt(),
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        write!(f, "{:.digits$} ± {:.digits$}", self.mean, self.deviation)
    }
}

/// The mean of a figure over several runs, and half of its 95% confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Interval {
    pub(crate) mean: f64,
    pub(crate) half: f64,
}

/// The 97.5% quantile of Student's t for up to 10 degrees of freedom; 2 is close enough beyond.
const STUDENT: [f64; 10] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
];

impl Interval {
    /// The interval of a figure of each run; zero if there was no run.
    pub(crate) fn of(figures: &[f64]) -> Self {
        let Spread { mean, deviation } = Spread::of(figures);
        let freedom = figures.len().saturating_sub(1);
        let student = STUDENT.get(freedom.wrapping_sub(1)).copied().unwrap_or(2.0);
        let count = figures.len().max(1) as f64;
        Self {
            mean,
            half: student * deviation / count.sqrt(),
        }
    }

    pub(crate) fn percent(self) -> String {
        format!("{:.2}% ± {:.2}", self.mean * 100.0, self.half * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_nearest_rank_and_of_nothing_zero() {
        assert_eq!(quantile(&[3.0, 1.0, 2.0, 4.0], 0.5), 2.0);
        assert_eq!(quantile(&[3.0, 1.0, 2.0, 4.0], 0.95), 4.0);
        assert_eq!(quantile(&[], 0.95), 0.0);
    }

    #[test]
    fn a_deviation_is_that_of_a_sample_or_of_all() {
        let told = |spread: Spread| (spread.mean, spread.deviation);
        assert_eq!(told(Spread::of(&[2.0, 4.0, 6.0])), (4.0, 2.0));
        assert_eq!(told(Spread::of(&[3.0])), (3.0, 0.0));
        assert_eq!(told(Spread::of_all(&[2.0, 4.0])), (3.0, 1.0));
        assert_eq!(told(Spread::of(&[])), (0.0, 0.0));
        assert_eq!(Spread::of_all(&[2.0, 4.0]).to_string(), "3.0 ± 1.0");
    }

    #[test]
    fn an_interval_is_students_of_the_mean() {
        // Deviation 1.414, over the root of two runs, times 12.706.
        let two = Interval::of(&[1.0, 3.0]);
        assert!(
            two.mean == 2.0 && (two.half - 12.706).abs() < 1e-9,
            "{two:?}"
        );
        assert_eq!(Interval::of(&[5.0; 10]).half, 0.0);
    }
}
