//! The tracer on the running kernel, against programs whose every activation is known.
//!
//! Nothing here depends on how long anything takes: a stalled machine makes these tests slow, not
//! wrong. Where the kernel or the user's rights do not allow tracing they are skipped, with the
//! reason printed; in CI that is a failure.

mod bursts;
mod calls;
mod contract;
mod exhausted;
mod expiries;
mod following;
mod forged;
mod limits;
mod marks;
mod meter;
mod partners;
mod programs;
mod role;
mod waits;
