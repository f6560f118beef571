//! What would the threads of a recording have missed, and what energy used, on another machine or
//! under another policy?
//!
//! [`Threads`] are the recording: each thread's period and jobs as the loop infers them.
//! [`scenario`] puts them on a machine under one [`ComparedPolicy`], and
//! [`ScenarioRun`](crate::scenario::ScenarioRun) simulates that.
//!
//! Assumptions: (1) a job is released when it was in the recording, whatever else happens, so a
//! thread that waits for another one does not wait longer here; (2) its work is the CPU time that
//! it took in the recording, at the speed of then; (3) what the recorder did not follow did not
//! run. A job that was released while its thread was still busy with the one before counts from its
//! beat.

mod policies;
mod threads;

pub use policies::{
    BudgetRules, ComparedMachine, ComparedPolicy, OverrunRule, reservations, scenario,
};
pub use threads::{ComparedThread, Threads, Unusable};

#[cfg(test)]
mod tests;
