//! Weighted max-min fairness: the highest common level at which all shares fit.
//!
//! At level v a task has v times its weight, but not less than its least and not more than its
//! most. The sum grows with v in straight pieces, which change where a task leaves its least or
//! reaches its most: so the level lies in the one piece that contains the total, and one sweep over
//! the sorted ends of the pieces finds it. O(n log n) for n tasks.

use onbeat_model::Bandwidth;

use super::{Grant, Limits, Request, reservation_within, why};

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

/// The one number from which each grant follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    /// The share of a task of weight 1; infinite where all fits.
    height: f64,
    /// Not even the minima fit, and only they are shared out.
    of_minima: bool,
}

impl Level {
    /// The highest one at which all `requests` stay within `limits`.
    pub(super) fn highest(requests: &[Request], limits: &Limits) -> Self {
        let shares: Vec<LevelShare> = requests
            .iter()
            .map(|request| LevelShare::of(request, limits.per_task))
            .collect();
        let of_minima = shares.iter().map(|share| share.least).sum::<Bandwidth>() > limits.total;
        let shares = if of_minima {
            shares.iter().map(LevelShare::only_the_minimum).collect()
        } else {
            shares
        };
        Self {
            height: highest_level(&shares, limits.total),
            of_minima,
        }
    }

    pub(super) fn grant(&self, request: &Request, limits: &Limits) -> Grant {
        let share = LevelShare::of(request, limits.per_task);
        let bandwidth = if self.of_minima {
            share.only_the_minimum().at(self.height)
        } else {
            share.at(self.height)
        };
        Grant {
            task: request.task,
            reservation: reservation_within(request.wanted, bandwidth, limits.shortest_runtime),
            why: why(request, &share, bandwidth),
        }
    }
}

/// Between what and what a task's share may lie, and how fast it grows with the level.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelShare {
    pub(super) least: Bandwidth,
    pub(super) most: Bandwidth,
    weight: f64,
}

impl LevelShare {
    pub(super) fn of(request: &Request, per_task: Bandwidth) -> Self {
        let most = request.wanted.bandwidth().min(per_task);
        Self {
            least: request.least.min(most),
            most,
            weight: effective(request.weight),
        }
    }

    pub(super) fn only_the_minimum(&self) -> Self {
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
