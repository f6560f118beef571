//! Figures of several runs, and what a curve says between its points.

use serde::Serialize;

use crate::spread::Spread;

/// The mean of a figure over several runs, and half of its 95% confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
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

    pub(super) fn percent(self) -> String {
        format!("{:.2}% ± {:.2}", self.mean * 100.0, self.half * 100.0)
    }

    /// As percentage points: `+1.20 ± 0.10`.
    pub(super) fn points(self) -> String {
        format!("{:+.2} ± {:.2}", self.mean * 100.0, self.half * 100.0)
    }
}

/// The value at bandwidth `x` of a curve through these points, in ascending order of the margin: on
/// the straight line between the two points beside it; none where the curve does not reach. A loop
/// that is given less than it asks for may ask for more, so that a bandwidth can belong to several
/// margins: the largest counts.
pub(super) fn at(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let mut pairs = points.windows(2).rev();
    let pair = pairs.find(|pair| match pair {
        [low, high] => low.0 <= x && x <= high.0,
        _ => false,
    })?;
    let [(x0, y0), (x1, y1)] = *pair else {
        return None;
    };
    let share = if x1 > x0 { (x - x0) / (x1 - x0) } else { 0.0 };
    Some(y0 + (y1 - y0) * share).filter(|y| y.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_students_of_the_mean() {
        let two = Interval::of(&[1.0, 3.0]);
        assert_eq!(two.mean, 2.0);
        // Deviation 1.414, over the root of two runs, times 12.706.
        assert!((two.half - 12.706).abs() < 1e-9, "{two:?}");
        assert_eq!(Interval::of(&[5.0; 10]).half, 0.0);
        assert_eq!(two.percent(), "200.00% ± 1270.60");
    }

    #[test]
    fn between_two_points_a_curve_is_straight_and_beyond_it_is_unknown() {
        let points = [(2.2, 0.9), (1.0, 0.5), (2.0, 0.1), (f64::NAN, f64::NAN)];
        assert!((at(&points, 1.25).unwrap() - 0.4).abs() < 1e-9);
        assert_eq!(at(&points, 1.0), Some(0.5));
        assert_eq!(at(&points, 2.1), None);
    }
}
