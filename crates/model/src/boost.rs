//! A larger share than others for an ordinary task without a reservation.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Boost {
    /// The number of nice levels; each is a factor of 1.25 in the share.
    pub levels: u8,
    /// How long it runs at a time: a thread that runs for shorter gets a CPU sooner, at the same
    /// share.
    #[serde(rename = "slice_ns")]
    pub slice: Span,
    /// The priority of `SCHED_RR`, before all ordinary tasks on any CPU, where the kernel permits
    /// that and no limit of the task's own says how long it may; 0: none. The giver bounds for how
    /// much CPU time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: u32,
}

impl Boost {
    /// The highest that a boost has: below what most programs that ask for one have.
    pub const HIGHEST_PRIORITY: u32 = 8;
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl fmt::Display for Boost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.priority > 0 {
            return write!(f, "real-time priority {}", self.priority);
        }
        write!(f, "{} nice levels, slices of {}", self.levels, self.slice)
    }
}
