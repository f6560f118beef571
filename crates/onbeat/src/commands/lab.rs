//! `onbeat sim`, `plan` and `scheduler`: commands of another program, onbeat-lab.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::bail;

use crate::cli::LabArgs;

const PROGRAM: &str = "onbeat-lab";

/// Becomes that program, if it is installed: beside this one, or where the shell looks.
pub(crate) fn run(command: &str, args: &LabArgs) -> anyhow::Result<ExitCode> {
    let beside = std::env::current_exe()?.with_file_name(PROGRAM);
    let program = if beside.exists() {
        beside
    } else {
        PROGRAM.into()
    };
    let error = Command::new(program).arg(command).args(&args.words).exec();
    if error.kind() == io::ErrorKind::NotFound {
        bail!("'{command}' is a command of onbeat-lab: install the package onbeat-lab");
    }
    bail!("cannot execute {PROGRAM}: {error}")
}
