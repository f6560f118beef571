//! Who on the machine has a reservation: what is asked when there is no room, and by `onbeat doctor`.

use std::fs;
use std::path::Path;

use onbeat_model::{Bandwidth, Span};

use crate::attributes::{Attributes, Policy};
use crate::task::Stat;

/// Every thread on the machine that has a reservation, and its bandwidth.
pub(crate) fn reserved_tasks() -> impl Iterator<Item = (u32, Bandwidth)> {
    numbers(Path::new("/proc"))
        .flat_map(|pid| numbers(&Path::new("/proc").join(pid.to_string()).join("task")))
        .filter(|&tid| {
            Stat::read(tid).is_some_and(|stat| stat.policy == libc::SCHED_DEADLINE as u32)
        })
        .filter_map(|tid| match Attributes::get(tid).ok()?.policy {
            Policy::Deadline(deadline) => {
                let span = Span::from_ns;
                let bandwidth = Bandwidth::of(span(deadline.runtime_ns), span(deadline.period_ns));
                Some((tid, bandwidth))
            }
            _ => None,
        })
}

/// The entries of a directory that are numbers; none if it cannot be read.
fn numbers(directory: &Path) -> impl Iterator<Item = u32> + use<> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}
