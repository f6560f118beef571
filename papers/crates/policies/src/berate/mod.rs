//! `schedulers/berate/policy.h`: BeRate, which schedules by the rates that it sees, with missed
//! deadline notifications.

use crate::{Boost, BoostParams};

crate::shim::policy!(Berate, onbeat_berate);

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    pub quantum_ns: u64,
    pub mdn: u64,
    pub inertia: u64,
    pub postpone_freely: u64,
    pub boost: BoostParams,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    pub window: u64,
    pub loads_ns: [u64; 4],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    pub quantum_ns: u64,
    pub window: u64,
    pub uncounted_ns: u64,
    pub window_ran_ns: u64,
    pub counted_ns: u64,
    pub mean_ns: u64,
    pub ran_ns: u64,
    pub deadline_ns: u64,
    pub rounds: u64,
    pub ended_ns: u64,
    pub boost: Boost,
}

#[cfg(test)]
mod tests;
