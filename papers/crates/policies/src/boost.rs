//! `schedulers/common/boost.h`: what a notification is worth where it raises a task's quantum.

/// A ratio of one.
pub const ONE: u64 = 1 << 20;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoostParams {
    /// The time over which the block ratio is averaged.
    pub average_ns: u64,
    /// The worth of one notification at a block ratio of one, in parts of the task's own quantum
    /// ([`ONE`] is all of it).
    pub step: u64,
    /// The most that notifications can add at a block ratio of one, likewise; at most 16 quanta.
    pub most: u64,
    /// How long the boost of a whole quantum lasts at a block ratio of one; at most four minutes.
    pub decay_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boost {
    /// The average part of time out of the run queue, of [`ONE`].
    pub block_ratio: u64,
    /// Up to when it has been counted.
    pub counted_ns: u64,
    /// The paper's mdn_nice, in parts of the quantum, of [`ONE`].
    pub extra: u64,
    /// Up to when the extra has decayed.
    pub decayed_ns: u64,
}
