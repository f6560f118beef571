//! From demand to reservations that fit together; pure.
//!
//! A [`predictor`] turns a thread's past jobs into the runtime it wants, the [`supervisor`] makes
//! all wishes fit (LFS++, eq. 1), and [`hysteresis`] says whether the outcome differs enough from
//! what is in force to be worth a system call. The [`ladder`] says which means a member of an
//! application has, by the [`account`] and the [`guard`]; [`notification`] what a program's word
//! about missed deadlines is worth. [`power`] says how fast the CPUs are to run. No system call,
//! clock, thread or failure: time and capacity arrive as data, and "no room" is a value.

pub mod account;
pub mod guard;
pub mod hysteresis;
pub mod ladder;
pub mod notification;
pub mod power;
pub mod predictor;
pub mod supervisor;
