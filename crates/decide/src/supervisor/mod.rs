//! Makes all requests fit together: eq. 1 of LFS++ over everything granted, with caps, guaranteed
//! minima, and weighted compression where there is not enough.
//!
//! The rule is weighted max-min fairness: every task gets what it wants up to a common level times
//! its weight, and at least its minimum; the level is the highest one at which all fits. So those
//! that want most for their weight give way first, and one that wants less than its share loses
//! nothing.
//! (LFS++, section 4.2, leaves the rule open: "a weighted compression function that penalises the
//! tasks with a smaller weight".) A real-time task with half of its demand is as useless as one
//! with two thirds, so it is better to break the promise to one than to all.
//!
//! 1. No task gets more than the per-task cap.
//! 2. If all then fits under the total, all is granted.
//! 3. If not even the minima fit, the minima are shared out by the same rule.
//! 4. Otherwise each task has the minimum, and the rest is shared out by the rule.

use std::fmt;

use onbeat_model::{Bandwidth, Reservation, Span, TaskId};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    pub task: TaskId,
    pub wanted: Reservation,
    /// The bandwidth below which it is not to be compressed, as long as all minima fit.
    pub least: Bandwidth,
    /// How much it counts against others; 1 is normal. Zero, negative and not-a-number: hardly.
    pub weight: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The most for all tasks together, in CPUs.
    pub total: Bandwidth,
    /// The most for one task. One thread cannot use more than one CPU.
    pub per_task: Bandwidth,
    /// The shortest runtime that can be put in force; a task that would get less gets nothing.
    pub shortest_runtime: Span,
}

impl Limits {
    /// The share of all CPUs that is granted. The kernel admits 95%, of which its fair server has
    /// 5%, and reservations that are being changed count twice for a while.
    pub const DEFAULT_TOTAL: f64 = 0.85;
    /// The share of one CPU for one task: the same on a machine of one CPU.
    pub const DEFAULT_PER_TASK: f64 = Self::DEFAULT_TOTAL;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantReason {
    Wanted,
    TaskCap,
    /// The total did not suffice: compressed to its share by weight.
    Compressed,
    /// The total did not suffice: compressed, down to its minimum.
    Minimum,
    /// The total does not even suffice for the minima: less than the minimum.
    BelowMinimum,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    pub task: TaskId,
    /// Its reservation, with the period it asked for; none if its share is shorter than the
    /// shortest runtime.
    pub reservation: Option<Reservation>,
    pub why: GrantReason,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaveWay {
    pub task: TaskId,
    pub wanted: Bandwidth,
    pub granted: Bandwidth,
    pub weight: f64,
    pub why: GrantReason,
}

impl fmt::Display for GaveWay {
    /// `task 4711 gives way from 60.0% to 42.5%: it is the largest, for its weight (1)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            task,
            wanted,
            granted,
            weight,
            why,
        } = self;
        write!(f, "task {task} gives way from {wanted} to {granted}: ")?;
        match why {
            GrantReason::Wanted => {
                write!(f, "its share would be below the kernel's minimum")
            }
            GrantReason::TaskCap => write!(f, "one task may not have more (limits.per-task)"),
            GrantReason::Compressed => {
                write!(f, "it is the largest, for its weight ({weight})")
            }
            GrantReason::Minimum => write!(f, "no further, this is limits.minimum"),
            GrantReason::BelowMinimum => write!(f, "not even limits.minimum fits for all"),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SupervisorOutcome {
    pub grants: Vec<Grant>,
    /// The tasks that got less than wanted, in the order in which they gave way; empty if all
    /// fitted.
    pub gave_way: Vec<GaveWay>,
}

/// Grants as much of the `requests` as fits within `limits`.
///
/// Assumes that no task asks twice. The sum of the grants is never over the total; granted again
/// from its own grants the outcome is the same; more weight never gets a task less.
#[must_use]
pub fn arbitrate(requests: &[Request], limits: &Limits) -> SupervisorOutcome {
    let shares = shares(requests, limits).into_iter();
    let grant = |(request, (share, given)): (&Request, (LevelShare, Bandwidth))| Grant {
        task: request.task,
        reservation: reservation_within(request.wanted, given, limits.shortest_runtime),
        why: why(request, &share, given),
    };
    let grants: Vec<Grant> = requests.iter().zip(shares).map(grant).collect();
    let gave_way = in_order(requests, &grants);
    SupervisorOutcome { grants, gave_way }
}

fn why(request: &Request, share: &LevelShare, given: Bandwidth) -> GrantReason {
    if given >= request.wanted.bandwidth() {
        GrantReason::Wanted
    } else if given >= share.most {
        GrantReason::TaskCap
    } else if given > share.least {
        GrantReason::Compressed
    } else if given == share.least {
        GrantReason::Minimum
    } else {
        GrantReason::BelowMinimum
    }
}

/// `wanted` with as much of its runtime as `bandwidth` allows; a constrained deadline stays.
fn reservation_within(
    wanted: Reservation,
    bandwidth: Bandwidth,
    shortest: Span,
) -> Option<Reservation> {
    let runtime = if bandwidth >= wanted.bandwidth() {
        wanted.runtime()
    } else {
        bandwidth.runtime_in(wanted.period())
    };
    if runtime < shortest {
        return None;
    }
    Reservation::new(runtime, wanted.deadline(), wanted.period()).ok()
}

fn in_order(requests: &[Request], grants: &[Grant]) -> Vec<GaveWay> {
    let mut gave_way: Vec<GaveWay> = requests
        .iter()
        .zip(grants)
        .filter(|(request, grant)| grant.reservation != Some(request.wanted))
        .map(|(request, grant)| GaveWay {
            task: request.task,
            wanted: request.wanted.bandwidth(),
            granted: grant
                .reservation
                .map_or(Bandwidth::ZERO, |reservation| reservation.bandwidth()),
            weight: request.weight,
            why: grant.why,
        })
        .collect();
    let height = |it: &GaveWay| it.wanted.as_cpus() / effective(it.weight);
    gave_way.sort_by(|a, b| height(b).total_cmp(&height(a)).then(a.task.cmp(&b.task)));
    gave_way
}

// At level v a task has v times its weight, but not less than its least and not more than its most.
// The sum grows with v in straight pieces, which change where a task leaves its least or reaches
// its most: so the level lies in the one piece that contains the total, and one sweep over the
// sorted ends of the pieces finds it.

/// The lightest weight, which keeps the level finite: beside one of 1, it is 1 us of a CPU in a
/// second, less than the shortest runtime that the kernel takes.
const LEAST_WEIGHT: f64 = 1e-6;

/// The value of a weight: one that is no positive number, hardly anything.
fn effective(weight: f64) -> f64 {
    if weight.is_finite() {
        weight.max(LEAST_WEIGHT)
    } else {
        LEAST_WEIGHT
    }
}

/// The shares of all `requests`, at the highest level at which they stay within the total. If not
/// even the minima do, only these are shared out.
fn shares(requests: &[Request], limits: &Limits) -> Vec<(LevelShare, Bandwidth)> {
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
struct LevelShare {
    least: Bandwidth,
    most: Bandwidth,
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
