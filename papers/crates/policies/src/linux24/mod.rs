//! `schedulers/linux24/policy.h`: the scheduler of Linux 2.2 to 2.4 with missed deadline
//! notifications.

use crate::{Boost, BoostParams};

crate::shim::policy!(Linux24, onbeat_linux24);

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    pub tick_ns: u64,
    pub quantum_ns: u64,
    pub mdn: u64,
    pub boost: BoostParams,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    pub epoch: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    pub epoch: u64,
    pub counter: u64,
    pub quantum: u64,
    pub given: u64,
    pub returned: u64,
    pub taken: u64,
    pub boost: Boost,
}

#[cfg(test)]
mod tests;
