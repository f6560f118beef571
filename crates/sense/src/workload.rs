//! The workload monitor: how much CPU time a thread has used.
//!
//! The scheduler's own account stands in `/proc/TID/schedstat`, first number (paper: the samples of
//! W in section 4.2). It is in nanoseconds, but of a running thread it can lack the time since the
//! last tick: 4 ms at most with `CONFIG_HZ=250`. The file is opened once per thread and re-read in
//! place: an open one stays that of the thread it was opened for, even when the number is reused.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use onbeat_kernel::proc::started_ticks;
use onbeat_model::{Event, Span, TaskId};
use rustix::process::{Resource, getrlimit};

#[derive(Debug)]
pub struct Workload {
    accounts: HashMap<TaskId, File>,
    most_open: usize,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            accounts: HashMap::new(),
            most_open: most_open(),
        }
    }
}

impl Workload {
    pub fn executed(&mut self, task: TaskId) -> Option<Span> {
        if let Some(account) = self.accounts.get(&task) {
            let executed = read(account);
            if executed.is_none() {
                self.accounts.remove(&task);
            }
            return executed;
        }
        let account = File::open(format!("/proc/{}/schedstat", task.tid)).ok()?;
        if started_ticks(task.tid)? != task.started_ticks {
            return None;
        }
        let executed = read(&account)?;
        if self.accounts.len() < self.most_open {
            self.accounts.insert(task, account);
        }
        Some(executed)
    }

    pub fn forget(&mut self, task: TaskId) {
        self.accounts.remove(&task);
    }

    /// Closes the files of those whose end is told.
    pub(crate) fn forget_exited(&mut self, events: &[Event]) {
        for event in events {
            if let Event::Exited { task, .. } = event {
                self.forget(*task);
            }
        }
    }
}

/// The common answers of the sensors of the running machine, which have a [`Workload`]: the rest of
/// a [`Sensor`](onbeat_model::Sensor).
macro_rules! of_this_machine {
    () => {
        fn now(&self) -> onbeat_model::Instant {
            onbeat_kernel::clock::now()
        }

        fn executed(&mut self, task: onbeat_model::TaskId) -> Option<onbeat_model::Span> {
            self.workload.executed(task)
        }

        fn idle(&mut self) -> Option<Vec<onbeat_model::Span>> {
            crate::idle::idle()
        }
    };
}
pub(crate) use of_this_machine;

/// The number of files that may stay open: half of what this process may have.
pub(crate) fn most_open() -> usize {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(most / 2).unwrap_or(usize::MAX)
}

fn read(account: &File) -> Option<Span> {
    let mut text = [0; 64];
    let length = account.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    let ns = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Span::from_ns(ns))
}
