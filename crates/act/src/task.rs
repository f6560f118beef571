//! Which task is meant: a number alone can be given to another task at any moment, the number with
//! the time the task started cannot.
//!
//! Every change checks the pair before and after it. No system call takes the pair, so the check
//! after is what tells that the number had not been reused meanwhile.

use std::fs;
use std::io;
use std::path::Path;

use onbeat_kernel::proc;
use onbeat_model::{Refusal, Stat, TaskId};

#[must_use]
pub fn stat(tid: u32) -> Option<Stat> {
    proc::stat(tid).ok()
}

/// The identity of the living task `tid`.
/// Fails with `ESRCH` if there is no such task, or only what a dead one leaves for its parent to
/// read; another one if that cannot be told, as `EMFILE`.
pub fn identify(tid: u32) -> io::Result<TaskId> {
    match proc::stat(tid) {
        Ok(stat) if !stat.is_dead() => Ok(TaskId {
            tid,
            started_ticks: stat.started_ticks,
        }),
        Err(error) if !tells_of_no_task(&error) => Err(error),
        _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

/// Whether the task lives, or that cannot be told: what is held for it is not forgotten for want of
/// a descriptor. False also for a number that has gone to another task since.
#[must_use]
pub fn is_alive(task: TaskId) -> bool {
    match identify(task.tid) {
        Ok(now) => now == task,
        Err(error) => !tells_of_no_task(&error),
    }
}

/// Whether the task is one of the kernel's own, which runs no program; false if that cannot be
/// told.
#[must_use]
pub fn is_of_kernel(tid: u32) -> bool {
    stat(tid).is_some_and(|stat| stat.is_of_kernel)
}

/// Why onbeat never changes the task `tid`, if it is one that every other program depends on.
#[must_use]
pub fn off_limits(tid: u32) -> Option<String> {
    if is_of_kernel(tid) {
        return Some(format!(
            "task {tid} is a thread of the kernel: onbeat serves only programs"
        ));
    }
    // In a container's own namespace, process 1 is an ordinary program.
    (proc::has_machines_numbers() && proc::process_of(tid) == Some(1)).then(|| {
        format!("task {tid} is init, on which every other program depends: onbeat leaves it alone")
    })
}

/// Whether the process no longer does anything, even if its parent has not asked yet how it ended.
pub(crate) fn has_ended(process: TaskId) -> bool {
    !is_alive(process) || stat(process.tid).is_some_and(|stat| stat.is_dead())
}

fn tells_of_no_task(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

pub(crate) fn refused(tid: u32, error: &io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::ESRCH) => Refusal::Gone,
        Some(libc::EPERM) => Refusal::NotPermitted {
            advice: format!(
                "changing the scheduling of task {tid} needs CAP_SYS_NICE: run onbeat as root, or \
                 give it the capability with 'setcap cap_sys_nice+ep'"
            ),
        },
        Some(libc::EINVAL) => Refusal::Other(format!(
            "the kernel did not take the parameters for task {tid}: see 'onbeat doctor' for its \
             limits"
        )),
        _ => Refusal::Other(format!(
            "the scheduling of task {tid} was not changed: {error}"
        )),
    }
}

pub(crate) fn is_asleep(task: TaskId) -> bool {
    stat(task.tid).is_some_and(|stat| stat.state != 'R')
}

/// The leader of the task's process; none if that is the task itself.
#[must_use]
pub fn leader(task: TaskId) -> Option<TaskId> {
    let pid = proc::process_of(task.tid)?;
    (pid != task.tid).then(|| identify(pid).ok())?
}

#[must_use]
pub fn processes() -> Vec<u32> {
    let mut processes: Vec<u32> = numbers(Path::new("/proc")).collect();
    processes.sort_unstable();
    processes
}

/// The entries of a directory that are numbers, such as the processes in `/proc`, read as far as
/// the iterator is asked; none if it cannot be read.
pub fn numbers(directory: &Path) -> impl Iterator<Item = u32> + use<> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

pub fn own() -> io::Result<TaskId> {
    // SAFETY: gettid takes nothing and always succeeds.
    identify(unsafe { libc::gettid() } as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kernels_word_that_there_is_no_task_ends_it() {
        for (errno, ends) in [
            (libc::ENOENT, true),
            (libc::ESRCH, true),
            (libc::EMFILE, false),
            (libc::ENFILE, false),
            (libc::EACCES, false),
            (libc::ENOMEM, false),
        ] {
            let error = io::Error::from_raw_os_error(errno);
            assert_eq!(tells_of_no_task(&error), ends, "{error}");
        }
        let none = identify(u32::MAX).unwrap_err();
        assert_eq!(none.raw_os_error(), Some(libc::ESRCH));
    }
}
