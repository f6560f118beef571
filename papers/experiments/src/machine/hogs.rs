//! CPU hogs: programs that want all the CPU time there is.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Machine, Program};

pub(crate) struct Hogs {
    /// None for no hogs: to stress-ng, 0 means one for each CPU.
    _program: Option<Program>,
}

impl Hogs {
    /// Starts `count` of them, and waits until they have settled.
    pub(crate) fn start(machine: &Machine, count: usize) -> anyhow::Result<Self> {
        if count == 0 {
            return Ok(Self { _program: None });
        }
        let mut command = Command::new("stress-ng");
        command
            .args(["--quiet", "--cpu", &count.to_string()])
            .stdout(Stdio::null());
        let program = Program::start(command, &machine.file("hogs.stderr"))?;
        machine.wait(Duration::from_secs(1))?;
        Ok(Self {
            _program: Some(program),
        })
    }
}
