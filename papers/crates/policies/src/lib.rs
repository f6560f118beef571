//! The rules of the scheduling policies under `schedulers/`, as safe Rust.
//!
//! Each policy is one C header, `schedulers/NAME/policy.h`, that says what happens to a task when
//! it wakes, runs, blocks, is put back or says `mdn()`. sched_ext schedulers compile it for the
//! kernel; this crate compiles the same lines for the simulated machine and for tests, behind one
//! type, [`Rules`].
//!
//! A policy is pure: whole numbers in, whole numbers out. It keeps no queue: the caller does,
//! ordered by [`Rules::key`]. The headers say what the fields of its structures mean.
//!
//! The tasks of [`grace`] have jobs and budgets: its rules have functions of their own.

pub mod berate;
pub mod best;
pub mod boost;
pub mod grace;
pub mod linux24;
mod shim;

pub use berate::Berate;
pub use best::Best;
pub use boost::{Boost, BoostParams};
pub use linux24::Linux24;
pub use shim::{Rules, Structures};
