//! Which unit, container and pod a thread belongs to.

use std::fs::File;
use std::io::Read;

use onbeat_kernel::proc::started_ticks;
use onbeat_model::{Cgroup, TaskId};

/// So much of `/proc/TID/cgroup` is read: a path has at most 4096 bytes, and there are at most 14
/// hierarchies, of which the last two lines tell. Users choose the paths.
const MOST_BYTES: u64 = 16 * 4096;

pub fn cgroup_of(task: TaskId) -> Cgroup {
    let mut text = Vec::new();
    let read = File::open(format!("/proc/{}/cgroup", task.tid))
        .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut text));
    // Looked at afterwards: what was read is of this thread if it lives still.
    if read.is_err() || started_ticks(task.tid) != Some(task.started_ticks) {
        return Cgroup::default();
    }
    Cgroup::of_process(&String::from_utf8_lossy(&text))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn this_thread_is_where_the_kernel_says_and_one_of_another_start_is_nowhere() {
        let tid = std::process::id();
        let started_ticks = started_ticks(tid).unwrap();
        let own = TaskId { tid, started_ticks };
        let text = fs::read_to_string("/proc/self/cgroup").unwrap();
        assert_eq!(cgroup_of(own), Cgroup::of_process(&text));
        let other = TaskId {
            started_ticks: started_ticks + 1,
            ..own
        };
        assert_eq!(cgroup_of(other), Cgroup::default());
    }
}
