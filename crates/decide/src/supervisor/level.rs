//! Weighted max-min fairness: the highest common level at which all shares fit.
//!
//! At level v a task has v times its weight, but not less than its least and not more than its
//! most. The sum grows with v in straight pieces, which change where a task leaves its least or
//! reaches its most: so the level lies in the one piece that contains the total, and one sweep over
//! the sorted ends of the pieces finds it. O(n log n) for n tasks.

use onbeat_model::Bandwidth;

use super::{Limits, Request};

/// The lightest weight, which keeps the level finite: beside one of 1, it is 1 us of a CPU in a
/// second, less than the shortest runtime that the kernel takes.
const LEAST_WEIGHT: f64 = 1e-6;

/// The value of a weight: one that is no positive number, hardly anything.
pub(super) fn effective(weight: f64) -> f64 {
    if weight.is_finite() {
        weight.max(LEAST_WEIGHT)
    } else {
        LEAST_WEIGHT
    }
}

/// The shares of all `requests`, at the highest level at which they stay within the total. If not
/// even the minima do, only these are shared out.
pub(super) fn shares(requests: &[Request], limits: &Limits) -> Vec<(LevelShare, Bandwidth)> {
    let of = |request| LevelShare::of(request, limits.per_task);
    let wanted: Vec<LevelShare> = requests.iter().map(of).collect();
    let least: Bandwidth = wanted.iter().map(|share| share.least).sum();
    let shared = if least > limits.total {
        wanted.iter().map(LevelShare::only_the_minimum).collect()
    } else {
        wanted.clone()
    };
    let level = highest_level(&shared, limits.total);
    let given = shared.iter().map(|share| share.at(level));
    wanted.into_iter().zip(given).collect()
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LevelShare {
    pub(super) least: Bandwidth,
    pub(super) most: Bandwidth,
    weight: f64,
}

impl LevelShare {
    fn of(request: &Request, per_task: Bandwidth) -> Self {
        let most = request.wanted.bandwidth().min(per_task);
        Self {
            least: request.least.min(most),
            most,
            weight: effective(request.weight),
        }
    }

    fn only_the_minimum(&self) -> Self {
        Self {
            least: Bandwidth::ZERO,
            most: self.least,
            weight: self.weight,
        }
    }

    fn at(&self, level: f64) -> Bandwidth {
        floor(level * self.weight).clamp(self.least, self.most)
    }
}

/// The highest level at which all shares together stay within `total`; infinite if they do at any.
/// Assumes that the least of all together do.
fn highest_level(shares: &[LevelShare], total: Bandwidth) -> f64 {
    if shares.iter().map(|share| share.most).sum::<Bandwidth>() <= total {
        return f64::INFINITY;
    }
    let mut turns: Vec<(f64, f64)> = shares
        .iter()
        .filter(|share| share.most > share.least)
        .flat_map(|share| {
            [
                (share.least.as_cpus() / share.weight, share.weight),
                (share.most.as_cpus() / share.weight, -share.weight),
            ]
        })
        .collect();
    turns.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sum: f64 = shares.iter().map(|share| share.least.as_cpus()).sum();
    let (mut level, mut growth) = (0.0, 0.0);
    for (turn, change) in turns {
        let reached = sum + growth * (turn - level);
        if reached >= total.as_cpus() && growth > 0.0 {
            return level + (total.as_cpus() - sum).max(0.0) / growth;
        }
        (sum, level, growth) = (reached, turn, growth + change);
    }
    level
}

/// Rounded down to what bandwidths are counted in, with a part to spare for the rounding of the
/// level itself: the sum must never come out above the total.
fn floor(cpus: f64) -> Bandwidth {
    Bandwidth::from_cpus((cpus * 1e9 - 2.0).floor() / 1e9)
}
