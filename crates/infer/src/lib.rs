//! Finds the rhythm in a thread's bursts, and its jobs; pure.

pub mod jobs;
pub mod period;
pub mod pipeline;
pub mod recorded;
#[cfg(test)]
#[allow(dead_code)]
#[path = "../tests/synthetic/mod.rs"]
mod synthetic;
