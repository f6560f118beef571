//! Processes that others have started, by their names.

use std::fs;

use crate::common::eventually;

/// The name of a process; empty if there is none.
pub(crate) fn comm(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    name.unwrap_or_default().trim_end().to_owned()
}

/// The program that this process has started, once it has this name.
pub(crate) fn child_of(pid: u32, name: &str) -> u32 {
    eventually("the program", || {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        let mut children = children.split_whitespace().filter_map(|it| it.parse().ok());
        children.find(|&child| comm(child) == name)
    })
}
