//! Which task is meant: a number alone can be given to another task at any moment, the number with
//! the time the task started cannot.
//!
//! Every change checks the pair before and after it. No system call takes the pair, so the check
//! after is what tells that the number had not been reused meanwhile.

use std::fs;
use std::io;
use std::path::Path;

use onbeat_model::TaskId;

/// The kernel's flag of its own threads, which is part of its interface with `ps`.
const PF_KTHREAD: u32 = 0x0020_0000;

/// What `/proc/TID/stat` says about a task, as far as it is used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The task's state: `R` runs or is runnable, `S` and `D` wait, `Z` and `X` are dead.
    pub state: char,
    /// Whether it is one of the kernel's own, which runs no program.
    pub is_of_kernel: bool,
    /// The process (thread group) it belongs to is not told here; its scheduling policy is.
    pub policy: u32,
    /// Field 22: when it started, in clock ticks since boot.
    pub started_ticks: u64,
}

impl Stat {
    /// Reads a line of `/proc/TID/stat`. The name, in parentheses, may hold anything, parentheses
    /// and blanks too: what follows counts from the last one.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        // The numbers are those of proc(5), which counts from 1; the state is field 3.
        let state = fields.next()?.chars().next()?;
        let mut field = |number: usize, after: usize| fields.nth(number - after - 1);
        let flags: u32 = field(9, 3)?.parse().ok()?;
        Some(Self {
            state,
            is_of_kernel: flags & PF_KTHREAD != 0,
            started_ticks: field(22, 9)?.parse().ok()?,
            policy: field(41, 22)?.parse().ok()?,
        })
    }

    /// Reads the state of the task `tid`; none if it cannot be read.
    #[must_use]
    pub fn read(tid: u32) -> Option<Self> {
        Self::try_read(tid).ok()
    }

    fn try_read(tid: u32) -> io::Result<Self> {
        // Not /proc/TID/stat, which adds up the times of all threads of the process.
        let line = fs::read(format!("/proc/{tid}/task/{tid}/stat"))?;
        let stat = Self::parse(&String::from_utf8_lossy(&line));
        stat.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    const fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// The identity of the living task `tid`.
///
/// # Errors
/// `ESRCH` if there is no such task, or only what a dead one leaves for its parent to read; another
/// one if that cannot be told, as `EMFILE`.
pub fn identify(tid: u32) -> io::Result<TaskId> {
    match Stat::try_read(tid) {
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
    Stat::read(tid).is_some_and(|stat| stat.is_of_kernel)
}

/// Whether the process no longer does anything, even if nobody has asked yet how it ended.
pub(crate) fn has_ended(process: TaskId) -> bool {
    let is_dead = |stat: Stat| matches!(stat.state, 'Z' | 'X');
    !is_alive(process) || Stat::read(process.tid).is_some_and(is_dead)
}

fn tells_of_no_task(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

/// Whether the task waits for something other than a CPU.
pub(crate) fn is_asleep(task: TaskId) -> bool {
    Stat::read(task.tid).is_some_and(|stat| stat.state != 'R')
}

/// The leader of the task's process; none if that is the task itself.
pub(crate) fn leader(task: TaskId) -> Option<TaskId> {
    let status = fs::read_to_string(format!("/proc/{}/status", task.tid)).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    let pid: u32 = line.trim().parse().ok()?;
    (pid != task.tid).then(|| identify(pid).ok())?
}

/// All processes, in order.
#[must_use]
pub fn processes() -> Vec<u32> {
    let mut processes: Vec<u32> = numbers(Path::new("/proc")).collect();
    processes.sort_unstable();
    processes
}

/// The entries of a directory that are numbers; none if it cannot be read.
pub(crate) fn numbers(directory: &Path) -> impl Iterator<Item = u32> + use<> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The identity of the calling thread.
///
/// # Errors
/// If `/proc` is not mounted.
pub fn own() -> io::Result<TaskId> {
    // SAFETY: gettid takes nothing and always succeeds.
    identify(unsafe { libc::gettid() } as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_parentheses_and_blanks_does_not_shift_the_fields() {
        let line = "42 (a) R (b 1 2) S 1 42 42 0 -1 4194304 97 0 0 0 0 0 0 0 20 0 1 0 26743 \
                    231 0 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 6 0 0 0";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(stat.state, 'S');
        assert_eq!(stat.started_ticks, 26743);
        assert_eq!(stat.policy, 6);
    }

    #[test]
    fn a_line_cut_short_is_no_stat() {
        assert_eq!(Stat::parse("42 (a) S 1 42 42 0"), None);
        assert_eq!(Stat::parse(""), None);
    }

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

    #[test]
    fn this_thread_is_itself_and_not_one_that_started_at_another_time() {
        let me = own().unwrap();
        assert!(is_alive(me));
        assert!(!is_alive(TaskId {
            started_ticks: me.started_ticks + 1,
            ..me
        }));
    }
}
