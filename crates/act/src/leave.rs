//! Taking a task out of SCHED_DEADLINE at a moment when the kernel's account stays right.
//!
//! The state of the task when it leaves matters:
//!
//! * runnable and within its runtime: the kernel uncounts it at its 0-lag time;
//! * throttled: the same, but the throttling stays until then. It is better waited for;
//! * asleep: past its 0-lag time it would stay counted for good. So its reservation is shrunk to
//!   the least there is just before it leaves, and what leaks is some millionths of a CPU.

use std::io;

use onbeat_model::TaskId;

use crate::attributes::{Attributes, Policy, with_kept_nice};
use crate::limits::DL_SCALE_NS;
use crate::server::Server;
use crate::task;

/// The reservation `set`, shrunk to the least runtime there is; none if it is no reservation. A
/// task can be found with it if onbeat was killed in the middle of a give-back.
pub(crate) fn shrunk(set: &Attributes) -> Option<Attributes> {
    let mut least = *set;
    match &mut least.policy {
        Policy::Deadline(deadline) => deadline.runtime_ns = DL_SCALE_NS,
        _ => return None,
    }
    Some(least)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    Left,
    /// Another program had just changed the task to this: left as it is.
    TakenOver(Attributes),
}

/// Gives `task`, which has `set` and the `server` and may be `asleep`, what it had `before`.
/// Fails with what the kernel says; the task then has `set` again. `ESRCH` if it is gone.
pub(crate) fn leave(
    task: TaskId,
    server: Option<Server>,
    asleep: bool,
    set: &Attributes,
    before: &Attributes,
) -> io::Result<Leaving> {
    // Shrinking stops the timer that would end the throttling.
    let throttled = server.is_some_and(|server| server.is_throttled());
    let least = shrunk(set).filter(|_| asleep && !throttled);
    let before = with_kept_nice(*before, set, task.tid)?;
    let now = Attributes::get(task.tid)?;
    if !task::is_alive(task) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    if now != *set {
        return Ok(Leaving::TakenOver(now));
    }
    let is_shrunk = least.is_some_and(|least| least.set(task.tid).is_ok());
    let left = before.set(task.tid);
    if left.is_err() && is_shrunk {
        // It had room for this a moment ago. If not now, what is left is known, too: see `shrunk`.
        let _ = set.set(task.tid);
    }
    left.map(|()| Leaving::Left)
}
