//! Finds the rhythm in a thread's bursts, its jobs and their demand; pure.

pub mod demand;
pub mod jobs;
pub mod period;
pub mod pipeline;
pub mod recorded;
mod tuning;
