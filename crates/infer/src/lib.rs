//! Finds the rhythm in a thread's bursts, its jobs and their demand; pure.

pub mod period;
