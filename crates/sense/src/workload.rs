//! The workload monitor: how much CPU time a thread has used, to the nanosecond.
//!
//! The scheduler's own account stands in `/proc/TID/schedstat`, first number (paper: the samples of
//! W in section 4.2). The file is opened once per thread and re-read in place: an open one stays
//! that of the thread it was opened for, even when the number is reused.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use onbeat_model::{Event, Span, Stat, TaskId};

/// Reads threads' CPU time.
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
    /// All CPU time that `task` has used up to now; none if it is gone.
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

    /// Closes the file of `task`.
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

/// What each sensor of the running machine that has a [`Workload`] answers alike: the rest of a
/// [`Sensor`](onbeat_model::Sensor).
macro_rules! of_this_machine {
    () => {
        fn now(&self) -> onbeat_model::Instant {
            crate::clock::now()
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

/// So many files may stay open: half of what this process may have.
pub(crate) fn most_open() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: it writes to the structure that it is given.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    usize::try_from(limit.rlim_cur / 2).unwrap_or(usize::MAX)
}

fn read(account: &File) -> Option<Span> {
    let mut text = [0; 64];
    let length = account.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    let ns = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Span::from_ns(ns))
}

/// When the thread `tid` started, in clock ticks since boot: the second half of its identity
/// ([`TaskId`]). None if there is no such thread.
#[must_use]
pub fn started_ticks(tid: u32) -> Option<u64> {
    // Not /proc/TID/stat, which adds up the times of all threads of the process.
    let stat = fs::read(format!("/proc/{tid}/task/{tid}/stat")).ok()?;
    Some(Stat::parse(&stat)?.started_ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn main_thread() -> TaskId {
        let tid = std::process::id();
        TaskId {
            tid,
            started_ticks: started_ticks(tid).expect("this process runs"),
        }
    }

    #[test]
    fn a_threads_cpu_time_never_falls_and_belongs_to_its_identity() {
        let me = main_thread();
        let mut workload = Workload::default();
        let before = workload.executed(me).expect("it has an account");
        assert!(workload.executed(me) >= Some(before));
        let reused = TaskId {
            started_ticks: me.started_ticks + 1,
            ..me
        };
        assert_eq!(workload.executed(reused), None);
        workload.forget(me);
        assert!(workload.executed(me) >= Some(before));
    }

    #[test]
    fn an_account_beyond_the_files_that_may_stay_open_is_read_all_the_same() {
        let me = main_thread();
        let mut workload = Workload {
            most_open: 0,
            ..Workload::default()
        };
        let before = workload.executed(me).expect("it has an account");
        assert!(workload.executed(me) >= Some(before));
        assert!(workload.accounts.is_empty());
        assert!(Workload::default().most_open > 0);
    }

    #[test]
    fn a_thread_that_is_not_there_has_no_start_and_no_account() {
        let nobody = TaskId::recorded(u32::MAX);
        assert_eq!(started_ticks(nobody.tid), None);
        assert_eq!(Workload::default().executed(nobody), None);
    }
}
