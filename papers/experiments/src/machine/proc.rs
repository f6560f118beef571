//! Figures of programs from `/proc`, and their files from PATH.

use std::fs;
use std::path::{Path, PathBuf};

/// The CPU time that a thread has had, or the first thread of a process; `folder` is its own in
/// `/proc`.
pub(crate) fn cpu_ns(folder: &Path) -> Option<u64> {
    let told = fs::read_to_string(folder.join("schedstat")).ok()?;
    told.split_whitespace().next()?.parse().ok()
}

/// A figure of `/proc/PID/status`, without its unit.
pub(crate) fn status(pid: u32, name: &str) -> Option<u64> {
    let told = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let figure = told
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    figure.split_whitespace().next()?.parse().ok()
}

/// The file of a program: in PATH, or among the games.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/games".into()]);
    folders
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
