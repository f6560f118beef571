//! An end of onbeat after which no process puts back what it has changed.

use std::fs;

use crate::common::Mortal;

/// Kills an onbeat and its guard.
pub(crate) fn kill_with_guard(onbeat: Mortal) {
    // SAFETY: plain system calls about a child of our child, which that one does not wait for.
    unsafe {
        for guard in guards(onbeat.id()) {
            libc::kill(guard.cast_signed(), libc::SIGKILL);
        }
    }
}

/// The guards that the process `onbeat` has started.
fn guards(onbeat: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{onbeat}/task/{onbeat}/children"));
    let children = children.unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|child| child.parse().ok());
    let is_guard = |child: &u32| {
        let arguments = fs::read(format!("/proc/{child}/cmdline"));
        arguments.is_ok_and(|arguments| arguments.starts_with(b"onbeat-guard\0"))
    };
    children.filter(is_guard).collect()
}
