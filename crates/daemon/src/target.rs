//! The task that a caller means, pinned down: its identity, its owner, and that it is still the
//! same.
//!
//! A number alone means nothing: the task may end and its number go to another one at any moment.
//! So the process is held by a descriptor (pidfd), everything about it is read from `/proc`, and
//! what was read counts only if the descriptor says afterwards that the process still lives. From
//! then on it is named by number and start time, which are checked again before each change.

use std::fs;
use std::os::fd::OwnedFd;

use onbeat_act::task;
use onbeat_kernel::proc::open_process;
use onbeat_kernel::wait::{self, PollFd, PollFlags};
use onbeat_model::{Name, RunningProgram, Span, Task, TaskId};

use crate::fault::Fault;

#[derive(Debug)]
pub struct Target {
    pub task: Task,
    /// The first thread of its process.
    pub leader: TaskId,
    pub uid: u32,
    pidfd: OwnedFd,
}

impl Target {
    /// The thread `tid`; if `process` is told, it must be one of that process.
    /// Fails if there is no such task, it is the kernel's or init's, it is changing hands (a
    /// set-user-ID program), or its number went to another one meanwhile.
    pub fn find(tid: u32, process: Option<u32>) -> Result<Self, Fault> {
        let gone = || Fault::NoSuchTask(format!("there is no task {tid}"));
        if tid == 0 || i32::try_from(tid).is_err() {
            return Err(gone());
        }
        if let Some(why) = task::off_limits(tid) {
            return Err(Fault::NotPermitted(why));
        }
        let status = Status::read(tid).ok_or_else(gone)?;
        if process.is_some_and(|process| process != status.process) {
            return Err(Fault::NoSuchTask(format!(
                "task {tid} does not belong to process {}, but to {}",
                process.unwrap_or(0),
                status.process
            )));
        }
        let pidfd = open_process(status.process).map_err(|error| match error.raw_os_error() {
            Some(libc::ESRCH | libc::EINVAL) => gone(),
            _ => Fault::Failed(format!("task {tid} cannot be opened (pidfd_open): {error}")),
        })?;
        // All that is read from here on is of the process that the descriptor holds, if that lives
        // still.
        let status = Status::read(tid).ok_or_else(gone)?;
        let id = task::identify(tid).map_err(|_| gone())?;
        let leader = task::identify(status.process).map_err(|_| gone())?;
        let target = Self {
            task: Task {
                id,
                pid: status.process,
                comm: status.name,
            },
            leader,
            uid: status.uid.ok_or_else(|| {
                Fault::NotPermitted(format!(
                    "task {tid} runs with the rights of more than one user: only root may do that"
                ))
            })?,
            pidfd,
        };
        if target.is_alive() && task::is_alive(id) {
            Ok(target)
        } else {
            Err(gone())
        }
    }

    /// Whether the process still lives, and the number is one of its threads'.
    pub fn is_alive(&self) -> bool {
        let (process, tid) = (self.task.pid, self.task.id.tid);
        let belongs = self.is_process() || is_thread_of(process, tid);
        let mut process = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let polled = wait::poll(&mut process, Some(Span::ZERO));
        // If it lives now, it did when its threads were looked at.
        polled.is_ok_and(|polled| polled && process[0].revents().is_empty()) && belongs
    }

    /// Whether it is of the process that was told, and of the same user.
    pub fn is_of(&self, told: &RunningProgram) -> bool {
        self.leader == told.process && self.uid == told.uid
    }

    pub fn is_process(&self) -> bool {
        self.task.id == self.leader
    }
}

fn is_thread_of(process: u32, tid: u32) -> bool {
    fs::exists(format!("/proc/{process}/task/{tid}")).unwrap_or(false)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) name: Name,
    pub(crate) process: u32,
    pub(crate) parent: u32,
    /// The user, if the real, effective, saved and file system's one are the same.
    pub(crate) uid: Option<u32>,
}

impl Status {
    pub(crate) fn read(tid: u32) -> Option<Self> {
        let text = fs::read(format!("/proc/{tid}/status")).ok()?;
        Self::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        };
        let mut uids = field("Uid")?.split_ascii_whitespace();
        let uid: u32 = uids.next()?.parse().ok()?;
        let same = uids.clone().count() == 3 && uids.all(|other| other.parse() == Ok(uid));
        Some(Self {
            name: Name::from(field("Name")?.trim()),
            process: field("Tgid")?.trim().parse().ok()?,
            parent: field("PPid")?.trim().parse().ok()?,
            uid: same.then_some(uid),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_task_of_two_users_belongs_to_neither() {
        let of = |uids: &str| {
            let text = format!("Name:\tsu\nTgid:\t7\nPPid:\t3\nUid:\t{uids}\n");
            Status::parse(&text).unwrap().uid
        };
        assert_eq!(of("1000\t1000\t1000\t1000"), Some(1000));
        for uids in ["1000\t0\t0\t0", "1000\t1000\t0\t1000", "1000"] {
            assert_eq!(of(uids), None, "{uids}");
        }
    }

    #[test]
    fn a_number_that_has_gone_to_another_process_or_user_is_not_of_what_was_told() {
        let target = Target::find(task::own().unwrap().tid, None).unwrap();
        let told = |later, uid| RunningProgram {
            process: TaskId {
                started_ticks: target.leader.started_ticks + later,
                ..target.leader
            },
            uid,
            path: String::new(),
            groups: 0,
        };
        assert!(target.is_of(&told(0, target.uid)));
        assert!(!target.is_of(&told(1, target.uid)));
        assert!(!target.is_of(&told(0, target.uid + 1)));
    }

    #[test]
    fn a_process_that_ended_is_known_to_have_ended_though_its_number_is_still_taken() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let target = Target::find(child.id(), None).unwrap();
        assert!(target.is_process() && target.is_alive());
        child.kill().unwrap();
        // A zombie until it is waited for.
        while target.is_alive() {
            std::thread::yield_now();
        }
        assert!(matches!(
            Target::find(child.id(), None),
            Err(Fault::NoSuchTask(_))
        ));
        child.wait().unwrap();
        assert!(!target.is_alive());
    }
}
