//! Schedulers of onbeat's own, as BPF programs that the kernel runs through sched_ext.
//!
//! Each is a folder of `schedulers/`: its rules (`policy.h`, which the simulated machine runs, too)
//! and the programs around them. They are compiled into this library, and one loader serves all:
//! what can be set before one starts, what it counts and what it knows of a task are found in the
//! types that the compiler has left in the object (BTF), under the names that they have in C.
//!
//! A scheduler is in force for as long as its [`Running`] is held. When the process that holds it
//! ends in any way, the kernel goes back to its own scheduler.

mod complaints;
mod error;
mod functions;
pub mod grace;
pub mod kernel;
mod layout;
mod list;
mod opened;
pub mod reserve;
mod running;

pub use error::Error;
pub use layout::Value;
pub use list::{ALL, Description, find};
pub use opened::{Extent, Opened};
pub use running::{Running, SchedulerOutcome};
