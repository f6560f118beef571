//! The journal: every decision of the loop, with its time and its reason.

use serde::Serialize;

use crate::{BoostEntry, Entry, SpeedEntry};

/// One decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Decision {
    /// On a thread's reservation.
    Reservation(Entry),
    /// On a thread's boost.
    Boost(BoostEntry),
    /// On the speed of the CPUs.
    Speed(SpeedEntry),
}

impl Decision {
    /// The decision, if it is on a reservation.
    #[must_use]
    pub fn on_reservation(self) -> Option<Entry> {
        match self {
            Self::Reservation(entry) => Some(entry),
            Self::Boost(_) | Self::Speed(_) => None,
        }
    }
}
