//! `schedulers/best/policy.h`: BEST, which schedules by the periods that it sees, with missed
//! deadline notifications.

crate::shim::policy!(Best, onbeat_best);

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    pub mdn: u64,
    pub confident: u64,
    pub inertia: u64,
    pub interactive_ns: u64,
    pub batch_ns: u64,
    pub longest_run_ns: u64,
    pub window: u64,
    pub patience: u64,
    pub discard_late: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    pub window: u64,
    pub hogs: [u64; 4],
    pub heard: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    pub entered_ns: u64,
    pub period_ns: u64,
    pub confidence: u64,
    pub deadline_ns: u64,
    pub ran_ns: u64,
    pub batch: u64,
    pub window: u64,
    pub notified: u64,
    pub told: u64,
    pub known: u64,
}

/// A confidence of one.
pub const SURE: u64 = 1024;

#[cfg(test)]
mod tests;
