//! A program's results in a cell.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::results::quantile;

/// A program has started once this many of its jobs follow each other closely.
const STARTED: usize = 3;
/// Closely: no longer apart than this.
const CLOSE_S: f64 = 0.25;
/// From here on it is served as long as it runs: the start has a figure of its own.
const STEADY_S: f64 = 3.0;

/// A program's results.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Done {
    /// Frames shown or encoded, jobs or cycles in time.
    pub(super) count: f64,
    /// The same from the third second on, where each is known.
    pub(super) steady: Option<f64>,
    /// From the program's start until it shows one frame after the other.
    pub(super) first_s: Option<f64>,
    /// The time from one to the next (or how late they were): median, 95th, 99th percentile,
    /// longest.
    pub(super) apart_ms: Option<[f64; 4]>,
    /// The load's progress in each second of the program's time.
    pub(super) load: Option<f64>,
    /// The same from the fifth second on.
    pub(super) load_later: Option<f64>,
}

impl Done {
    /// Counts `times`, in seconds since the program's start and in their order, up to `end`.
    pub(super) fn of_times(times: &[f64], end: Duration) -> Self {
        let times: Vec<f64> = times
            .iter()
            .copied()
            .filter(|at| (0.0..=end.as_secs_f64()).contains(at))
            .collect();
        let first = times
            .windows(STARTED)
            .find(|few| few.windows(2).all(|two| two[1] - two[0] <= CLOSE_S))
            .map(|few| few[0]);
        let since = |from: f64| times.iter().filter(|at| **at >= from).count() as f64;
        let steady: Vec<f64> = times.iter().copied().filter(|at| *at >= STEADY_S).collect();
        let apart: Vec<f64> = steady
            .windows(2)
            .map(|two| (two[1] - two[0]) * 1000.0)
            .collect();
        Self {
            count: times.len() as f64,
            steady: Some(since(STEADY_S)),
            first_s: first,
            apart_ms: (!apart.is_empty()).then(|| spread(&apart)),
            ..Self::default()
        }
    }

    /// A count, without times.
    pub(super) fn of_count(count: f64) -> Self {
        Self {
            count,
            ..Self::default()
        }
    }
}

/// Median, 95th and 99th percentile, and the longest.
pub(super) fn spread(figures: &[f64]) -> [f64; 4] {
    [0.5, 0.95, 0.99, 1.0].map(|p| quantile(figures, p))
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}", self.count)?;
        if let Some(first) = self.first_s {
            write!(f, ", first after {first:.2} s")?;
        }
        if let Some([p50, _, p99, longest]) = self.apart_ms {
            write!(f, ", apart {p50:.0} ms, p99 {p99:.0}, at most {longest:.0}")?;
        }
        if let Some(load) = self.load {
            write!(f, "; load {load:.2}/s")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_started_when_its_frames_follow_each_other() {
        let times: Vec<f64> = [0.5]
            .into_iter()
            .chain((0..100).map(|n| 2.0 + f64::from(n) * 0.04))
            .collect();
        let done = Done::of_times(&times, Duration::from_secs(5));
        assert_eq!(done.count, 77.0, "those after the end are not counted");
        assert_eq!(done.first_s, Some(2.0));
        assert_eq!(done.steady, Some(51.0));
        let [p50, .., longest] = done.apart_ms.unwrap();
        assert!((p50 - 40.0).abs() < 0.1 && (longest - 40.0).abs() < 0.1);
        assert_eq!(Done::of_times(&[], Duration::from_secs(5)).count, 0.0);
    }
}
