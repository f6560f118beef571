//! `schedulers/linux24/policy.h`: the scheduler of Linux 2.2 to 2.4 with missed deadline
//! notifications.

use crate::{Boost, BoostParams};

crate::shim::policy!(Linux24, onbeat_linux24);

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// How often the clock ticks.
    pub tick_ns: u64,
    pub quantum_ns: u64,
    /// Notifications are listened to: 0 or 1.
    pub mdn: u64,
    /// The worth of notifications.
    pub boost: BoostParams,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// How often the counters have been recomputed.
    pub epoch: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The epoch that the counter is of.
    pub epoch: u64,
    pub counter: u64,
    /// Ticks that nice is worth.
    pub quantum: u64,
    /// The part of the counter that is its parent's.
    pub given: u64,
    /// How much its children gave back.
    pub returned: u64,
    /// How much of that it has taken.
    pub taken: u64,
    /// The paper's block ratio and mdn_nice.
    pub boost: Boost,
}

#[cfg(test)]
mod tests;
