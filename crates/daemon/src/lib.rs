//! The system service: reservations for ordinary users, within quotas, asked for over D-Bus.
//!
//! ```text
//!  bus ──calls──▶ bus::{manager, realtimekit}: who calls, may he, whom does he mean
//!                        │ Request                         ▲ answer, Changed
//!                        ▼                                 │
//!  keeper ──▶ control::Controller, the same loop as `onbeat run`'s
//!               │ Gate: what is tracked        │ Bounded: what is reserved
//!               ▼                              ▼
//!            sense::BpfSensor              act::DeadlineActuator
//! ```
//!
//! One thread turns the loop and owns all state; the threads that talk to the bus find out who
//! calls and pass requests on. Everything that is reserved goes through [`bounded::Bounded`],
//! everything that is tracked through [`gate::Gate`], and both ask one [`book::Book`] for whom.

pub mod book;
pub mod bounded;
pub mod bus;
pub mod config;
mod directory;
pub mod fault;
pub mod flood;
pub mod gate;
pub mod keeper;
pub mod logs;
pub mod looking;
pub mod person;
pub mod quota;
pub mod request;
pub mod rules;
mod service;
pub mod target;

mod watchdog;

pub use config::Sources;
pub use service::{Options, Told, read, run};
