//! `schedulers/berate/policy.h`: BeRate, which schedules by the rates that it sees, with missed
//! deadline notifications.

use crate::{Boost, BoostParams};

crate::shim::policy!(Berate, onbeat_berate);

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    pub quantum_ns: u64,
    /// Notifications are listened to: 0 or 1.
    pub mdn: u64,
    /// One sample moves the average by one part of this many.
    pub inertia: u64,
    /// Each preemption postpones a deadline by a whole period: 0 or 1.
    pub postpone_freely: u64,
    /// The worth of notifications.
    pub boost: BoostParams,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The number of the present window of time.
    pub window: u64,
    /// The paper's L in each window, by its number: the sum of the quanta of all tasks that ran for
    /// a noteworthy time in it and have not ended since.
    pub loads_ns: [u64; 4],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The paper's q, without what notifications add.
    pub quantum_ns: u64,
    /// The last window in which it was in the run queue.
    pub window: u64,
    /// The time that it has run since the next was brought up to date.
    pub uncounted_ns: u64,
    pub window_ran_ns: u64,
    /// The quantum with which it is part of that window's load, if it is.
    pub counted_ns: u64,
    /// The paper's e-bar.
    pub mean_ns: u64,
    /// The time that it has computed since it last blocked or ended a quantum.
    pub ran_ns: u64,
    /// When what it does should be done.
    pub deadline_ns: u64,
    /// How many quanta it has ended since it last blocked.
    pub rounds: u64,
    /// When it ended the last of them.
    pub ended_ns: u64,
    /// The paper's block ratio and mdn_nice.
    pub boost: Boost,
}

#[cfg(test)]
mod tests;
