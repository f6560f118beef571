//! Taking a task out of SCHED_DEADLINE at a moment when the kernel's account stays right.
//!
//! What the task is doing when it leaves matters:
//!
//! * runnable and within its runtime: the kernel uncounts it at its 0-lag time;
//! * throttled: the same, but the throttling stays until then. It is better waited for;
//! * asleep: past its 0-lag time it would stay counted for good. So its reservation is shrunk to
//!   the least there is just before it leaves, and what leaks is some millionths of a CPU.

use std::fs;
use std::io;

use onbeat_model::TaskId;

use crate::attributes::{Attributes, Policy, kept_nice};
use crate::limits::SHORTEST_RUNTIME_NS;
use crate::task::{self, Stat};

/// The reservation `set`, shrunk to the least runtime there is; none if it is no reservation. A
/// task can be found with it if onbeat was killed in the middle of a give-back.
pub(crate) fn shrunk(set: &Attributes) -> Option<Attributes> {
    let mut least = *set;
    match &mut least.policy {
        Policy::Deadline(deadline) => deadline.runtime_ns = SHORTEST_RUNTIME_NS,
        _ => return None,
    }
    Some(least)
}

/// Gives `task`, which has `set`, what it had `before`; its nice value may have been changed by
/// hand meanwhile, and then stays.
///
/// # Errors
/// What the kernel says; the task then has `set` again. `ESRCH` if it is gone.
pub(crate) fn leave(task: TaskId, set: &Attributes, before: &Attributes) -> io::Result<()> {
    let asleep = Stat::read(task.tid).is_some_and(|stat| stat.state != 'R');
    // Shrinking stops the timer that would end the throttling.
    let least = shrunk(set).filter(|_| asleep && !is_throttled(task));
    let before = before.with_nice(kept_nice(task.tid)?);
    if !task::is_alive(task) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    let is_shrunk = least.is_some_and(|least| least.set(task.tid).is_ok());
    before.set(task.tid).inspect_err(|_| {
        if is_shrunk {
            // It had room for this a moment ago. If not now, what is left is known, too: see
            // `shrunk`.
            let _ = set.set(task.tid);
        }
    })
}

/// Whether the task has used up its runtime and waits for the next. Where the kernel does not tell,
/// no.
pub(crate) fn is_throttled(task: TaskId) -> bool {
    let text = fs::read_to_string(format!("/proc/{}/sched", task.tid)).unwrap_or_default();
    // A server that was never yet used has neither runtime nor deadline.
    server(&text, "dl.runtime").is_some_and(|left_ns| left_ns <= 0)
        && server(&text, "dl.deadline").is_some_and(|deadline_ns| deadline_ns > 0)
}

/// One of the lines of `/proc/TID/sched` that tell how a task's server stands.
fn server(text: &str, name: &str) -> Option<i64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.rsplit_once(':')?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_the_runtime_is_read_from_the_kernels_words() {
        let text = "policy          :    6\n\
                    dl.runtime      :   -1270\n\
                    dl.deadline     :   1075232798051\n";
        assert_eq!(server(text, "dl.runtime"), Some(-1270));
        assert_eq!(server(text, "dl.deadline"), Some(1_075_232_798_051));
        assert_eq!(server("policy : 0\n", "dl.runtime"), None);
        assert_eq!(server("dl.runtime : many\n", "dl.runtime"), None);
    }
}
