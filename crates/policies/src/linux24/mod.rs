//! `schedulers/linux24/policy.h`: the scheduler of Linux 2.2 to 2.4 with missed deadline
//! notifications.

use crate::shim::{self, Compiled, OperationsOf};
use crate::{Boost, BoostParams};

pub type Linux24 = Compiled<Named>;

#[derive(Clone, Copy, Debug)]
pub enum Named {}

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

unsafe extern "C" {
    static onbeat_linux24: OperationsOf<Named>;
}

impl shim::Named for Named {
    const NAME: &'static str = "linux24";
    type Params = Params;
    type Machine = Machine;
    type Task = Task;

    fn operations() -> &'static OperationsOf<Self> {
        // SAFETY: the table is constant, and laid out as the type says.
        unsafe { &onbeat_linux24 }
    }
}

#[cfg(test)]
mod tests;
