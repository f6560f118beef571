//! The journal: every decision of the loop, with its time and its reason.

use serde::Serialize;

use crate::{BoostEntry, Entry, SpeedEntry};

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Decision {
    Reservation(Entry),
    Boost(BoostEntry),
    Speed(SpeedEntry),
}

impl Decision {
    #[must_use]
    pub fn on_reservation(self) -> Option<Entry> {
        match self {
            Self::Reservation(entry) => Some(entry),
            Self::Boost(_) | Self::Speed(_) => None,
        }
    }
}
