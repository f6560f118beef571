//! The policies of the machine's tasks: read when there is no room, and by `onbeat doctor`, to find
//! the tasks with reservations.

use std::path::Path;

use onbeat_model::{Bandwidth, Span};

use crate::attributes::{Attributes, Policy};
use crate::task::{numbers, stat};

/// Every thread on the machine that has a reservation, and its bandwidth.
pub(crate) fn reserved_tasks() -> impl Iterator<Item = (u32, Bandwidth)> {
    tasks_of_policy(libc::SCHED_DEADLINE as u32).filter_map(|tid| {
        match Attributes::get(tid).ok()?.policy {
            Policy::Deadline(deadline) => {
                let span = Span::from_ns;
                let bandwidth = Bandwidth::of(span(deadline.runtime_ns), span(deadline.period_ns));
                Some((tid, bandwidth))
            }
            _ => None,
        }
    })
}

pub fn tasks_of_policy(policy: u32) -> impl Iterator<Item = u32> {
    numbers(Path::new("/proc"))
        .flat_map(|pid| numbers(&Path::new("/proc").join(pid.to_string()).join("task")))
        .filter(move |&tid| stat(tid).is_some_and(|stat| stat.policy == policy))
}
