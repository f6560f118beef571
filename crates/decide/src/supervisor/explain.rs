//! In which order tasks gave way when not all could be served, for the log.

use std::cmp::Ordering;
use std::fmt;

use onbeat_model::{Bandwidth, TaskId};

use super::level::effective;
use super::{Grant, GrantReason, Request};

/// One task that got less than it wanted.
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

/// The tasks that got less than they wanted, first those that wanted most for their weight.
pub(super) fn in_order(requests: &[Request], grants: &[Grant]) -> Vec<GaveWay> {
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
    gave_way.sort_by(|a, b| demand_per_weight(b, a).then(a.task.cmp(&b.task)));
    gave_way
}

fn demand_per_weight(a: &GaveWay, b: &GaveWay) -> Ordering {
    let height = |g: &GaveWay| g.wanted.as_cpus() / effective(g.weight);
    height(a).total_cmp(&height(b))
}
