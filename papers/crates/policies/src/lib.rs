//! The rules of the scheduling policies under `schedulers/`, as safe Rust.
//!
//! Each policy is one C header, `schedulers/NAME/policy.h`, that says what happens to a task when
//! it wakes, runs, blocks, is put back or says `mdn()`. sched_ext schedulers compile it for the
//! kernel; this crate compiles the same lines for the simulated machine and for tests, behind one
//! trait, [`Rules`].
//!
//! A policy is pure: whole numbers in, whole numbers out. It keeps no queue: the caller does,
//! ordered by [`Rules::key`].
//!
//! The tasks of [`grace`] have jobs and budgets: its rules have functions of their own.

pub mod berate;
pub mod best;
pub mod boost;
pub mod grace;
pub mod linux24;
pub mod reserve;
pub mod shim;

pub use berate::Berate;
pub use best::Best;
pub use boost::{Boost, BoostParams};
pub use linux24::Linux24;

use onbeat_model::{Instant, Span};

/// The rules of a scheduling policy.
///
/// A task joins, wakes, is picked, and then is put back or blocks; what it ran is charged before
/// either. A ready task's key holds from [`wakeup`](Self::wakeup) or [`put_back`](Self::put_back)
/// until it is picked. A task that wakes takes the CPU from one that runs if its key is less.
pub trait Rules {
    type Task: Clone + std::fmt::Debug;

    /// A task of this niceness, not ready yet.
    fn join(&mut self, nice: i8, now: Instant) -> Self::Task;
    fn fork(&mut self, parent: &mut Self::Task, child: &mut Self::Task);
    /// `child`, which runs, ends.
    fn exit(&mut self, child: &mut Self::Task, parent: &mut Self::Task);
    fn leave(&mut self, task: &mut Self::Task);
    fn renice(&mut self, task: &mut Self::Task, nice: i8);
    fn wakeup(&mut self, task: &mut Self::Task, now: Instant);
    fn block(&mut self, task: &mut Self::Task, now: Instant);
    fn pick(&mut self, task: &mut Self::Task, now: Instant);
    fn charge(&mut self, task: &mut Self::Task, ran: Span, now: Instant);
    /// Whether `task`, which was just charged, has to stand in line again.
    fn tick(&mut self, task: &mut Self::Task, now: Instant) -> bool;
    /// `task` ran and still wants to, but has to stand in line again. `behind` is the least key in
    /// line that is greater than its own, if there is one.
    fn put_back(&mut self, task: &mut Self::Task, behind: Option<u64>, now: Instant);
    /// Where `task` stands in line, ready or running: the least runs first, and of equals who came
    /// first.
    fn key(&self, task: &Self::Task, now: Instant) -> u64;
    /// How long `task` may run from now on until it has to stand in line again.
    fn slice(&self, task: &Self::Task, now: Instant) -> Span;
    /// `task`, which runs, says that it has missed a deadline. False if that changes nothing.
    fn mdn(&mut self, task: &mut Self::Task, now: Instant) -> bool;
}
