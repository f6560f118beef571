//! From a thread's demand to what it is to have: requests, and how they are arbitrated.
//!
//! ```text
//!  demand ──wanted──▶ consider ──▶ requests ──arbitrate──▶ adjustments
//! ```
//!
//! Nothing in this folder knows threads or the actuator: the run loop passes the adjustments to
//! `enforcement`, one after the other.

pub(crate) mod arbiter;
mod server;

use onbeat_model::{Bandwidth, Reservation};

pub(crate) use server::{wanted, within};

pub(crate) fn bandwidth(reservation: Option<Reservation>) -> Bandwidth {
    reservation.map_or(Bandwidth::ZERO, |r| r.bandwidth())
}
