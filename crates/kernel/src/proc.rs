//! `/proc/TID/stat` and `/proc/TID/status`, and descriptors of processes.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use onbeat_model::Stat;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The kernel's record of the thread `tid`.
/// Fails if it cannot be read: there is no such thread, or no descriptor is left.
pub fn stat(tid: u32) -> io::Result<Stat> {
    // Not /proc/TID/stat, which adds up the times of all threads of the process.
    let line = fs::read(format!("/proc/{tid}/task/{tid}/stat"))?;
    Stat::parse(&line).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// A descriptor of the `process` (pidfd), which can be read once it has ended.
/// Fails if there is no such process, or no descriptor is left.
pub fn open_process(process: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(rustix::io::Errno::SRCH)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// When the thread `tid` started, in clock ticks since boot: the second half of its
/// [identity](onbeat_model::TaskId). None if there is no such thread.
pub fn started_ticks(tid: u32) -> Option<u64> {
    Some(stat(tid).ok()?.started_ticks)
}

/// The first number of a field of the thread's status, such as `Uid:`.
pub fn status_number(tid: u32, field: &str) -> Option<u32> {
    let value = status(tid, field)?;
    value.split_whitespace().next()?.parse().ok()
}

pub fn status_numbers(tid: u32, field: &str) -> Option<Vec<u32>> {
    let value = status(tid, field)?;
    let numbers = value.split_whitespace().map(|number| number.parse().ok());
    numbers.collect()
}

/// The rest of the line of the thread's status that begins with `field`.
pub fn status(tid: u32, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(field));
    value.map(str::to_owned)
}

/// How many tasks the machine has, those of the kernel among them; 0 if that cannot be read.
pub fn tasks() -> u64 {
    task_counts().map_or(0, |(_, all)| all)
}

/// How many tasks run or are ready to, the reader among them; 0 if that cannot be read.
pub fn ready_tasks() -> u64 {
    task_counts().map_or(0, |(ready, _)| ready)
}

fn task_counts() -> Option<(u64, u64)> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    // 0.20 0.18 0.12 1/80 11206
    let (ready, all) = load.split_whitespace().nth(3)?.split_once('/')?;
    Some((ready.parse().ok()?, all.parse().ok()?))
}

/// Whether processes have the numbers here that the kernel's own records have: no container has
/// numbers of its own.
pub fn has_machines_numbers() -> bool {
    let namespace = fs::read_link("/proc/self/ns/pid");
    namespace.is_ok_and(|namespace| namespace.as_os_str() == "pid:[4026531836]")
}

pub fn process_of(tid: u32) -> Option<u32> {
    status_number(tid, "Tgid:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tasks_of_the_machine_are_counted() {
        // Others come and go meanwhile.
        let threads: Vec<_> = (0..200)
            .map(|_| std::thread::spawn(std::thread::park))
            .collect();
        let with = tasks();
        threads.iter().for_each(|thread| thread.thread().unpark());
        assert!(with >= 200, "{with}");
        let most = fs::read_to_string("/proc/sys/kernel/threads-max").unwrap();
        assert!(with <= most.trim().parse().unwrap(), "{with}");
    }

    #[test]
    fn this_thread_is_one_of_this_process() {
        let pid = std::process::id();
        assert_eq!(process_of(pid), Some(pid));
        assert_eq!(status_numbers(pid, "Pid:"), Some(vec![pid]));
        assert!(started_ticks(pid).is_some());
        assert_eq!(process_of(u32::MAX), None);
        let none = stat(u32::MAX).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }
}
