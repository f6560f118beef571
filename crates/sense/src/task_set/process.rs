//! The content of `/proc` on threads that are to be followed.

use std::fs;

use onbeat_kernel::proc;
use onbeat_model::{Task, TaskId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadStatus {
    pub(crate) task: Task,
    /// It sleeps: nothing that it does has begun already.
    pub(crate) is_asleep: bool,
}

impl ThreadStatus {
    /// The thread `tid`; none if there is no such thread, or it is about to be gone.
    pub(crate) fn look(tid: u32) -> Option<Self> {
        let stat = proc::stat(tid).ok()?;
        let task = Task {
            id: TaskId {
                tid,
                started_ticks: stat.started_ticks,
            },
            pid: proc::process_of(tid)?,
            comm: stat.comm,
        };
        (!stat.is_dead()).then_some(Self {
            task,
            is_asleep: stat.state != 'R',
        })
    }
}

/// The threads to track with `tid`: all of the process if it is one's first thread, otherwise that
/// thread alone. None if there is no such thread.
pub(crate) fn threads_of(tid: u32) -> Vec<u32> {
    let Some(asked) = ThreadStatus::look(tid) else {
        return Vec::new();
    };
    if asked.task.pid != tid {
        return vec![tid];
    }
    let Ok(folder) = fs::read_dir(format!("/proc/{tid}/task")) else {
        return Vec::new();
    };
    folder
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}
