//! onbeat with a state folder of its own, so that tests do not meet each other's files.

use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) fn onbeat(state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    command.env("ONBEAT_STATE_DIR", state).stdin(Stdio::null());
    command
}

/// How many state files there are in `directory`.
pub(crate) fn state_files(directory: &Path) -> usize {
    std::fs::read_dir(directory).map_or(0, |entries| entries.count())
}
