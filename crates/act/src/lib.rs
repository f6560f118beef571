//! Puts reservations in force through SCHED_DEADLINE, boosts through nice values and slices, and
//! speeds through cpufreq; and puts everything back.
//!
//! [`DeadlineActuator`] is the [`Actuator`](onbeat_model::Actuator) of the live kernel. Before each
//! change it writes its [`StateFile`](restore::StateFile), from which [`restore::restore`] undoes
//! everything after a crash. This is the only crate that changes a scheduling parameter.

pub mod attributes;
mod boosts;
pub mod cpufreq;
mod deadline;
pub mod kernel;
mod limits;
pub mod own;
mod priorities;
pub mod restore;
mod server;
pub mod task;
pub mod watcher;

pub use deadline::{DeadlineActuator, DeadlineOptions};
pub use kernel::tasks_of_policy;
pub use limits::{allowed_cpus, may_reserve};
pub use priorities::{Effect, Priorities};
pub use restore::{Given, Priority};
