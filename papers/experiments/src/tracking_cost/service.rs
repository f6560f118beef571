//! `onbeat daemon` on a bus of its own, and what can be seen of it from outside.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::machine::{Machine, Program, binary};

const PATIENCE: Duration = Duration::from_secs(30);

/// Every client may do everything: this bus has no other users.
const BUS: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=@BUS@</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
"#;

/// Tracks the programs of this name by itself, wherever they lie.
const RULE: &str = "scan = \"500ms\"\n[[rule]]\nname = \"beats\"\nprogram = \"@PROGRAM@\"\n";

pub(crate) struct Bus {
    folder: tempfile::TempDir,
    _bus: Program,
}

pub(crate) struct RunningService {
    program: Program,
    port: u16,
}

impl Bus {
    pub(crate) fn start(machine: &Machine, program: &str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let socket = folder.path().join("bus");
        let text = BUS.replace("@BUS@", &socket.to_string_lossy());
        fs::write(folder.path().join("bus.conf"), text)?;
        let rule = RULE.replace("@PROGRAM@", program);
        fs::write(folder.path().join("onbeat.toml"), rule)?;
        let mut command = Command::new("dbus-daemon");
        command
            .arg("--nofork")
            .arg("--config-file")
            .arg(folder.path().join("bus.conf"))
            .stdout(Stdio::null());
        let bus = Program::start(command, &machine.file("tracking-cost.bus.stderr"))?;
        if !machine.wait_for(PATIENCE, || socket.exists())? {
            bail!("dbus-daemon does not start: its messages are in tracking-cost.bus.stderr");
        }
        Ok(Self { folder, _bus: bus })
    }

    /// Starts the service, and waits until it says that it serves, as it says it to systemd.
    pub(crate) fn service(&self, machine: &Machine) -> anyhow::Result<RunningService> {
        let path = self.folder.path().join("notify");
        // The socket of a service before this one.
        let _ = fs::remove_file(&path);
        let ready = UnixDatagram::bind(&path).context("cannot listen for the service")?;
        ready.set_read_timeout(Some(PATIENCE))?;
        let bus = format!("unix:path={}", self.folder.path().join("bus").display());
        let mut command = Command::new(binary()?);
        command
            .args(["daemon", "--metrics", "127.0.0.1:0", "--config"])
            .arg(self.folder.path().join("onbeat.toml"))
            .env("ONBEAT_STATE_DIR", self.folder.path().join("state"))
            .env("DBUS_SYSTEM_BUS_ADDRESS", bus)
            .env("NOTIFY_SOCKET", &path)
            .stdout(Stdio::null());
        let log = machine.file("tracking-cost.service.stderr");
        let program = Program::start(command, &log)?;
        let told = || format!("the service does not serve: see {}", log.display());
        let mut word = [0; 256];
        loop {
            let length = ready.recv(&mut word).with_context(told)?;
            if word
                .get(..length)
                .is_some_and(|word| word.starts_with(b"READY=1"))
            {
                break;
            }
        }
        let log = fs::read_to_string(&log)?;
        let port = log.split_once("http://127.0.0.1:");
        let port = port.and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
        Ok(RunningService {
            program,
            port: port.context("the service does not say where its metrics are")?,
        })
    }
}

impl RunningService {
    pub(crate) fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// A figure of the page for Prometheus, of a series without labels.
    pub(crate) fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        let mut lines = page.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value = line.and_then(|value| value.parse().ok());
        value.with_context(|| format!("no metric {name}: {page}"))
    }
}
