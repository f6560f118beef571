//! A larger share than others for an ordinary task without a reservation.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Span;

/// A larger share, and shorter slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Boost {
    /// The number of nice levels; each is a factor of 1.25 in the share.
    pub levels: u8,
    /// How long it runs at a time: a thread that runs for shorter gets a CPU sooner, at the same
    /// share.
    #[serde(rename = "slice_ns")]
    pub slice: Span,
    /// It goes before all ordinary tasks, on any CPU (`SCHED_RR` of the lowest priority), where the
    /// kernel permits that and no limit of its own says how long it may. The giver bounds for how
    /// much CPU time.
    #[serde(default, skip_serializing_if = "is_false")]
    pub first: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl fmt::Display for Boost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first {
            return f.write_str("before all ordinary tasks");
        }
        write!(f, "{} nice levels, slices of {}", self.levels, self.slice)
    }
}
