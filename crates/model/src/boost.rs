//! A larger share than others for an ordinary task without a reservation.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Span;

/// A larger share, and shorter slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Boost {
    /// The number of nice levels; each is a factor of 1.25 in the share.
    pub levels: u8,
    /// How long it runs at a time: who runs for shorter is let in sooner, at the same share.
    #[serde(rename = "slice_ns")]
    pub slice: Span,
}

impl fmt::Display for Boost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} nice levels, slices of {}", self.levels, self.slice)
    }
}
