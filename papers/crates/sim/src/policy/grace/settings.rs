//! The knobs, and what a task is.

use crate::stochastic::schedule::Rounding;
use onbeat_model::Span;
use serde::Deserialize;

use super::Scheme;
use crate::scenario::file::span;

/// `[grace]` in a scenario.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GraceSettings {
    pub scheme: Scheme,
    /// The share of jobs that are to meet their deadline, where a task does not say.
    pub rho: f64,
    /// How many groups the histogram of demands has: r.
    pub groups: usize,
    /// How many of the last jobs it counts: n.
    pub window: usize,
    /// The number of jobs after which a task gets its first plan.
    pub profile: usize,
    /// The number of jobs after which it gets a new one; none: the first stays.
    pub update_every: Option<usize>,
    /// The share of the CPU at its highest speed that is kept for best effort.
    pub best_effort: f64,
    /// How a wanted speed becomes one that there is.
    pub rounding: Rounding,
    /// The interval at which budgets and speeds are looked at, as by a timer; zero: exactly.
    #[serde(deserialize_with = "span")]
    pub tick: Span,
}

impl Default for GraceSettings {
    /// GRACE-OS as in the paper's section 4.3, but exact in time.
    fn default() -> Self {
        Self {
            scheme: Scheme::GraceOs,
            rho: 0.95,
            groups: 15,
            window: 100,
            profile: 100,
            update_every: None,
            best_effort: 0.0,
            rounding: Rounding::Up,
            tick: Span::ZERO,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GraceClass {
    /// It has a job every period.
    RealTime {
        period: Span,
        /// The share of its jobs that are to meet their deadline; none: as set for all.
        rho: Option<f64>,
    },
    /// It runs when no real-time task does, at the speed that the last one left.
    BestEffort,
}
