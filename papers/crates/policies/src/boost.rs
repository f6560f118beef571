//! `schedulers/common/boost.h`: what a notification is worth where it raises a task's quantum.

/// A ratio of one.
pub const ONE: u64 = 1 << 20;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoostParams {
    pub average_ns: u64,
    pub step: u64,
    pub most: u64,
    pub decay_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boost {
    pub block_ratio: u64,
    pub counted_ns: u64,
    pub extra: u64,
    pub decayed_ns: u64,
}
