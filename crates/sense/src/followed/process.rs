//! What `/proc` tells of threads that are to be followed.

use std::fs;

use onbeat_model::{Name, Task, TaskId};

/// A thread as `/proc` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) task: Task,
    /// It sleeps: nothing that it does has begun already.
    pub(crate) is_asleep: bool,
}

impl Seen {
    /// The thread `tid`; none if there is no such thread, or it is about to be gone.
    pub(crate) fn look(tid: u32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{tid}/stat")).ok()?;
        let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
        let tgid = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
        seen(tid, tgid.trim().parse().ok()?, &stat)
    }
}

/// From `TID (NAME) STATE ...`, where the name may hold anything.
fn seen(tid: u32, pid: u32, stat: &[u8]) -> Option<Seen> {
    let from = stat.iter().position(|&byte| byte == b'(')?;
    let to = stat.iter().rposition(|&byte| byte == b')')?;
    let comm = Name::new(stat.get(from + 1..to)?);
    let rest = std::str::from_utf8(stat.get(to + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let started_ticks = fields.nth(18)?.parse().ok()?;
    let task = Task {
        id: TaskId { tid, started_ticks },
        pid,
        comm,
    };
    let is_asleep = !state.starts_with('R');
    (!state.starts_with(['Z', 'X'])).then_some(Seen { task, is_asleep })
}

/// The threads to track with `tid`: all of the process if it is one's first thread, otherwise that
/// thread alone. None if there is no such thread.
pub(crate) fn threads_of(tid: u32) -> Vec<u32> {
    let Some(asked) = Seen::look(tid) else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_is_told_from_what_follows() {
        let fields = "1 ".repeat(18);
        let stat = format!("7 (a) R (b) S {fields}4711 0\n");
        let seen = seen(7, 5, stat.as_bytes()).unwrap();
        assert_eq!(seen.task.comm.to_text(), "a) R (b");
        assert_eq!(seen.task.id.started_ticks, 4711);
        assert_eq!(seen.task.pid, 5);
        assert!(seen.is_asleep);
    }

    #[test]
    fn the_dead_and_the_damaged_are_nobody() {
        let fields = "1 ".repeat(18);
        for state in ["Z", "X"] {
            let stat = format!("7 (a) {state} {fields}4711 0\n");
            assert_eq!(seen(7, 7, stat.as_bytes()), None);
        }
        for stat in ["", "7 (a", "7 a) S", ") (", "7 (a) S 1 1"] {
            assert_eq!(seen(7, 7, stat.as_bytes()), None, "{stat}");
        }
    }

    #[test]
    fn this_test_is_a_thread_of_its_process() {
        let pid = std::process::id();
        // SAFETY: no arguments, cannot fail.
        let tid = unsafe { libc::gettid() }.unsigned_abs();
        let threads = threads_of(pid);
        assert!(
            threads.contains(&pid) && threads.contains(&tid),
            "{threads:?}"
        );
        let me = Seen::look(tid).unwrap();
        assert_eq!((me.task.pid, me.is_asleep), (pid, false));
        assert!(threads_of(u32::MAX).is_empty());
    }
}
