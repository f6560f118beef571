//! The identity of a thread in `/proc`: for tracers that hear only its number.

use std::fs;

use onbeat_model::{Name, Task, TaskId};

use onbeat_kernel::proc::{process_of, started_ticks, status_number, status_numbers};

/// The thread `tid`, with its process and its name; none if there is no such thread.
pub fn task(tid: u32) -> Option<Task> {
    Some(Task {
        id: TaskId {
            tid,
            started_ticks: started_ticks(tid)?,
        },
        pid: process_of(tid)?,
        comm: name(tid)?,
    })
}

pub fn name(tid: u32) -> Option<Name> {
    let comm = fs::read(format!("/proc/{tid}/comm")).ok()?;
    Some(Name::new(comm.strip_suffix(b"\n").unwrap_or(&comm)))
}

pub fn parent(pid: u32) -> Option<u32> {
    status_number(pid, "PPid:")
}

pub fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let numbers = list.split_ascii_whitespace();
            numbers
                .filter_map(|child| child.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

pub fn user(pid: u32) -> Option<u32> {
    status_number(pid, "Uid:")
}

pub fn groups(pid: u32) -> Vec<u32> {
    let own = status_number(pid, "Gid:");
    let others = status_numbers(pid, "Groups:").unwrap_or_default();
    own.into_iter().chain(others).collect()
}
