//! A trace buffer of our own in tracefs, that no other user of it sees or disturbs; and what a
//! killed onbeat left.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use super::TracefsError;
use super::place::instances;
use onbeat_kernel::proc::started_ticks;

/// The size of a trace buffer for each CPU, in KiB: some 10,000 events. `PACE`, at 100,000 events a
/// second.
const BUFFER_KB: u32 = 1024;

const EVENTS: [&str; 7] = [
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup_new",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "task/task_newtask",
    "task/task_rename",
];

/// A program's path may hold whole lines that read as other events, and so tell of other users'
/// threads. Such an exec is not written at all; everything else in the trace is numbers, and names
/// of 15 bytes.
const NO_LINE_BREAK: &str = "!(filename ~ \"*\n*\")";

/// The buffer. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Instance(PathBuf);

impl Instance {
    /// Makes one that traces no task yet, not even if a thread is started by one of ours.
    pub(super) fn make() -> Result<Self, TracefsError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let instances = instances()?;
        let pid = process::id();
        let name = BufferOwner {
            pid,
            started_ticks: started_ticks(pid).unwrap_or(0),
        };
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = instances.join(format!("{}-{count}", name.prefix()));
        fs::create_dir(&path).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => TracefsError::NoPrivilege { path: instances },
            _ => TracefsError::Kernel {
                what: "make a trace buffer",
                path: path.clone(),
                source,
            },
        })?;
        let instance = Self(path);
        instance.set("trace_clock", "mono", "choose the trace's clock")?;
        instance.set(
            "buffer_size_kb",
            &BUFFER_KB.to_string(),
            "size the trace buffer",
        )?;
        instance.set(
            "options/event-fork",
            "1",
            "have what is started traced, too",
        )?;
        // An empty filter would be no filter. 5.10 takes no number beyond what it gives out.
        instance.add(NOBODY).or_else(|refused| {
            let last = last_number().ok_or(refused)?;
            instance.add(last)
        })?;
        instance.set(
            "events/sched/sched_process_exec/filter",
            NO_LINE_BREAK,
            "leave out programs that have a line break in their path",
        )?;
        for event in EVENTS {
            instance.set(&format!("events/{event}/enable"), "1", "switch an event on")?;
        }
        Ok(instance)
    }

    pub(super) fn add(&self, tid: u32) -> Result<(), TracefsError> {
        self.set("set_event_pid", &tid.to_string(), "choose whom to trace")
    }

    /// The trace, as text; never waits.
    pub(super) fn pipe(&self) -> Result<File, TracefsError> {
        let path = self.0.join("trace_pipe");
        (OpenOptions::new().read(true))
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(&path)
            .map_err(|source| TracefsError::Kernel {
                what: "read the trace",
                path,
                source,
            })
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes to one of its files; to those that hold a list, one more.
    fn set(&self, file: &str, value: &str, what: &'static str) -> Result<(), TracefsError> {
        let path = self.0.join(file);
        (OpenOptions::new().write(true).open(&path))
            .and_then(|mut file| file.write_all(value.as_bytes()))
            .map_err(|source| TracefsError::Kernel { what, path, source })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // `onbeat restore` removes the rest after a failure.
        let _ = fs::remove_dir(&self.0);
    }
}

/// The largest number that a thread can have (PID_MAX_LIMIT), which none gets unless 4 million run.
const NOBODY: u32 = 4_194_303;

/// The largest number that a thread gets here. A task with that number is traced in vain: he is not
/// asked for.
fn last_number() -> Option<u32> {
    let numbers = fs::read_to_string("/proc/sys/kernel/pid_max").ok()?;
    numbers.trim().parse::<u32>().ok()?.checked_sub(1)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BufferOwner {
    pid: u32,
    started_ticks: u64,
}

impl BufferOwner {
    fn prefix(self) -> String {
        format!("onbeat-{}-{}", self.pid, self.started_ticks)
    }

    fn of(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix("onbeat-")?.split('-');
        let owner = Self {
            pid: parts.next()?.parse().ok()?,
            started_ticks: parts.next()?.parse().ok()?,
        };
        let _count: u32 = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(owner)
    }

    fn lives(self) -> bool {
        started_ticks(self.pid) == Some(self.started_ticks)
    }
}

/// Removes the trace buffers of onbeats that are no more, and says which, and what failed. Where
/// tracefs cannot be reached, there is nothing to say.
#[must_use]
pub fn remove_leftovers() -> Vec<(String, io::Result<()>)> {
    let Ok(folder) = instances().map(fs::read_dir) else {
        return Vec::new();
    };
    (folder.into_iter().flatten().flatten())
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let owner = BufferOwner::of(&name)?;
            if owner.lives() {
                return None;
            }
            Some((name, remove(&entry.path())?))
        })
        .collect()
}

/// Removes a buffer that was there; none if its owner, or another one who restores, has removed it
/// after it was listed, or is about to.
fn remove(path: &Path) -> Option<io::Result<()>> {
    match fs::remove_dir(path) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) => None,
        removed => Some(removed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_whose_buffer_it_is_and_others_buffers_are_nobodys() {
        let owner = BufferOwner {
            pid: 7,
            started_ticks: 99,
        };
        let name = format!("{}-3", owner.prefix());
        assert_eq!(BufferOwner::of(&name), Some(owner));
        for other in [
            "foo",
            "onbeat-7",
            "onbeat-7-99",
            "onbeat-7-99-3-1",
            "onbeat-x-99-3",
        ] {
            assert_eq!(BufferOwner::of(other), None, "{other}");
        }
    }

    #[test]
    fn of_a_buffer_that_its_owner_has_removed_meanwhile_nothing_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let buffer = folder.path().join("onbeat-7-99-3");
        fs::create_dir(&buffer).unwrap();
        assert!(matches!(remove(&buffer), Some(Ok(()))));
        assert!(remove(&buffer).is_none());
        fs::create_dir_all(buffer.join("in use")).unwrap();
        assert!(matches!(remove(&buffer), Some(Err(_))));
    }
}
