//! Finds the rhythm in a thread's bursts, and its jobs; pure.

pub mod jobs;
pub mod period;
pub mod pipeline;
pub mod recorded;
