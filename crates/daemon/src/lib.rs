//! The system service: reservations for ordinary users, within quotas, asked for over D-Bus.
//!
//! ```text
//!  bus ──calls──▶ bus::{manager, realtimekit}: who calls, is it permitted, which task is meant
//!                        │ ServiceRequest                  ▲ answer, Changed
//!                        ▼                                 │
//!  service ──▶ control::Controller, the same loop as `onbeat run`'s
//!               │ FilteredSensor: what is tracked     │ QuotaActuator: what is reserved
//!               ▼                                     ▼
//!            sense::BpfSensor                      act::DeadlineActuator
//! ```
//!
//! One thread turns the loop and owns all state. The threads that talk to the bus identify callers
//! and pass requests on. Every reservation goes through [`quota_actuator::QuotaActuator`], every
//! tracked thread through [`filtered_sensor::FilteredSensor`], and both ask one
//! [`registry::Registry`] at whose charge.

pub mod account;
pub mod bus;
pub mod call_limit;
pub mod config;
mod directory;
pub mod fault;
pub mod filtered_sensor;
pub mod ledger;
mod line_limit;
pub mod logs;
pub mod monitor;
pub mod publisher;
pub mod quota;
pub mod quota_actuator;
pub mod registry;
mod reload;
pub mod request;
pub mod rules;
mod run;
pub mod service;
pub mod target;
pub mod watch;
mod watchdog;

pub use config::Sources;
pub use run::{ServiceOptions, Signal, read, run};
