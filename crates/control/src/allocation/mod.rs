//! From a thread's demand to what it is to have: requests, and how they are arbitrated.
//!
//! ```text
//!  demand ──wanted──▶ request ──▶ RequestTable ──arbiter──▶ Adjustment
//! ```
//!
//! Nothing in this folder knows the actuator: the run loop passes the adjustments to `enforcement`,
//! one after the other, and tells the arbiter how much is in force before it asks for the next.

pub(crate) mod arbiter;
mod overload;
mod request;
mod requests;
mod server;
mod wanted;

use onbeat_model::{Bandwidth, Capacity, Reservation};

use crate::Settings;
pub(crate) use overload::MANY;
pub(crate) use requests::Place;

/// What requests depend on besides their threads.
pub(crate) struct Conditions<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) capacity: &'a Capacity,
    /// How many times as long as now jobs will take, at the speed at which budgets must suffice.
    pub(crate) stretch: f64,
}

pub(crate) fn bandwidth(reservation: Option<Reservation>) -> Bandwidth {
    reservation.map_or(Bandwidth::ZERO, |r| r.bandwidth())
}
