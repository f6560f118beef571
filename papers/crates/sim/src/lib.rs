//! A simulated machine, so that a question about scheduling has an answer in seconds, without root
//! and without noise.
//!
//! ```text
//!  Workload ──jobs──▶ Machine: CPUs with speeds, threads that sleep, run and block
//!                        │ ready, blocked, charge, pick, pace ...
//!                        ▼
//!                     Policy: Linux (deadline, fixed priorities, fair), or another one
//!                        │
//!                        ▼
//!                     Observer: figures, jobs as CSV, a timeline, bursts for a Sensor
//! ```
//!
//! [`Machine`] is a discrete-event simulation: it goes from one event to the next, and what happens
//! in between is arithmetic. The scheduling [`policy`] is a plug. [`loop_adapter`] makes a machine
//! a sensor and an actuator, so that the loop of `onbeat-control` drives it as a live one.
//! [`scenario`] reads a machine and its tasks from a file. [`comparison`] makes tasks of a
//! recording's threads and asks how they would have fared otherwise. [`stochastic`] takes budgets
//! and speeds from the distribution of demands, [`least_budget`] from the jobs of a recording;
//! [`supply`] says what a server gives.
//!
//! The omissions: caches and memory, interrupts, the cost of migrations, locks between threads.

pub mod comparison;
pub mod least_budget;
pub mod loop_adapter;
pub mod machine;
pub mod observe;
pub mod policy;
pub mod scenario;
pub mod stochastic;
pub mod supply;
pub mod workload;

mod indexed_min;
mod work;

pub use machine::{Costs, Cpus, Machine};
pub use observe::Observer;
pub use policy::Policy;
pub use work::Work;
pub use workload::Workload;

/// The number of a task in its machine, from zero.
pub type TaskIndex = usize;

/// The number of a CPU, from zero.
pub type CpuIndex = usize;

#[cfg(test)]
mod tests;
