//! The actuator on the live kernel.

mod account;
mod again;
mod boosts;
mod common;
mod crash;
mod hands_off;
mod many;
mod own;
mod priorities;
mod refusals;
mod seen;
mod way_back;
