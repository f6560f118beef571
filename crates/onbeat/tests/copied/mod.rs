//! Programs under paths and names of their own.

use std::path::Path;
use std::process::Command;

/// Copies the program there, with its mode. Not by this process: a child of another test would have
/// the copy open for writing until it has executed its own program, and the copy could not be
/// executed meanwhile ("Text file busy").
pub(crate) fn copy_program(program: impl AsRef<Path>, to: impl AsRef<Path>) {
    let (program, to) = (program.as_ref(), to.as_ref());
    let mut copy = Command::new("cp");
    copy.arg("--preserve=mode").arg(program).arg(to);
    let copied = copy.status();
    assert!(
        copied.is_ok_and(|status| status.success()),
        "{} cannot be copied to {}",
        program.display(),
        to.display()
    );
}
