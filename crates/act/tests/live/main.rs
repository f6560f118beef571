//! The actuator on the live kernel.

mod common;
mod refusals;
mod way_back;
