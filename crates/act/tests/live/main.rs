//! The actuator on the live kernel.

mod account;
mod common;
mod hands_off;
mod refusals;
mod way_back;
