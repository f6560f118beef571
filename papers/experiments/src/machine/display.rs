//! A display that is not seen: an X server that draws into memory.
//!
//! Display numbers from :90 on, because mplayer shares memory with the server only below :10;
//! without, each frame is copied through a socket and the server has a share in the work, as a
//! compositor has on a desktop.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::bail;

use super::{Machine, Program};

const NUMBERS: std::ops::RangeInclusive<u32> = 90..=120;

/// A running X server; dropping it ends it.
pub(crate) struct Display {
    name: String,
    server: Program,
}

impl Display {
    /// Starts a server under the first number that is free.
    pub(crate) fn start(machine: &Machine) -> anyhow::Result<Self> {
        for number in NUMBERS {
            let socket = format!("/tmp/.X11-unix/X{number}");
            let lock = format!("/tmp/.X{number}-lock");
            if Path::new(&socket).exists() || Path::new(&lock).exists() {
                continue;
            }
            let mut command = Command::new("Xvfb");
            command
                .arg(format!(":{number}"))
                .args(["-screen", "0", "1920x1080x24", "-nolisten", "tcp"])
                .stdout(Stdio::null());
            let mut server = Program::start(command, &machine.file("display.stderr"))?;
            let mut ended = false;
            machine.wait_for(Duration::from_secs(30), || {
                ended = server.ended().is_some();
                ended || Path::new(&socket).exists()
            })?;
            if !ended && Path::new(&socket).exists() {
                let name = format!(":{number}");
                return Ok(Self { name, server });
            }
        }
        bail!("no X server starts: Xvfb's messages are in display.stderr among the figures")
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }
}
