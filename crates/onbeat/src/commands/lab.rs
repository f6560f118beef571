//! `onbeat sim`, `plan` and `scheduler`: commands of another program, onbeat-lab.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::bail;
use onbeat_command::child;

use crate::cli::LabArgs;

const PROGRAM: &str = "onbeat-lab";

/// Becomes that program, if it is installed.
pub(crate) fn run(command: &str, args: &LabArgs) -> anyhow::Result<ExitCode> {
    let mut program = Command::new(child::sibling(PROGRAM));
    let error = program.arg(command).args(&args.words).exec();
    if error.kind() == io::ErrorKind::NotFound {
        bail!("'{command}' is a command of onbeat-lab: install the package onbeat-lab");
    }
    bail!("cannot execute {PROGRAM}: {error}")
}
