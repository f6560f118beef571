//! `onbeat daemon` on a bus of its own, and what can be seen of it from outside.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::machine::{Machine, Program, binary, status};

const PATIENCE: Duration = Duration::from_secs(30);

/// A file descriptor of one thread (O_EXCL).
const PIDFD_THREAD: u32 = 0o200;

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
const RULE: &str = "scan = \"500ms\"\n[[rule]]\nname = \"soak\"\nprogram = \"@PROGRAM@\"\n";

pub(crate) struct Bus {
    folder: tempfile::TempDir,
    _bus: Program,
}

pub(crate) struct RunningService {
    program: Program,
    /// From its start until it said that it serves.
    pub(crate) started_in: Duration,
    port: u16,
}

/// The service's resources, as the kernel counts them.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct Taken {
    pub(crate) memory_kb: u64,
    pub(crate) files: usize,
    pub(crate) threads: usize,
    /// In the maps of its BPF programs: tasks that are tracked, and the tasks that they have woken.
    pub(crate) map_entries: usize,
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
        let bus = Program::start(command, &machine.file("soak.bus.stderr"))?;
        if !machine.wait_for(PATIENCE, || socket.exists())? {
            bail!("dbus-daemon does not start: its messages are in soak.bus.stderr");
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
        let log = machine.file("soak.service.stderr");
        let begin = Instant::now();
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
        let started_in = begin.elapsed();
        let log = fs::read_to_string(&log)?;
        let port = log.split_once("http://127.0.0.1:");
        let port = port.and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
        Ok(RunningService {
            program,
            started_in,
            port: port.context("the service does not say where its metrics are")?,
        })
    }
}

impl RunningService {
    pub(crate) fn pid(&self) -> u32 {
        self.program.pid()
    }

    pub(crate) fn taken(&self) -> anyhow::Result<Taken> {
        let of = format!("/proc/{}", self.program.pid());
        let count = |folder: &str| -> anyhow::Result<usize> {
            Ok(fs::read_dir(format!("{of}/{folder}"))?.count())
        };
        Ok(Taken {
            memory_kb: status(self.program.pid(), "VmRSS").context("the service has ended")?,
            files: count("fd")?,
            threads: count("task")?,
            map_entries: map_entries(self.program.pid())?,
        })
    }

    fn page(&self) -> anyhow::Result<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.ask() {
                Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(100)),
                answer => return answer,
            }
        }
    }

    fn ask(&self) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        if page.starts_with("HTTP/1.1 200") {
            Ok(page)
        } else {
            bail!("the service gives no metrics: {page}");
        }
    }

    pub(crate) fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let page = self.page()?;
        let mut lines = page.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value = line.and_then(|value| value.parse().ok());
        value.with_context(|| format!("no metric {name}"))
    }

    pub(crate) fn reserved(&self) -> anyhow::Result<BTreeSet<u32>> {
        let page = self.page()?;
        let tids = page.lines().filter_map(|line| {
            let series = line.strip_prefix("onbeat_thread_reserved_cpus{tid=\"")?;
            let (tid, rest) = series.split_once('"')?;
            let (_, value) = rest.rsplit_once(' ')?;
            (value.parse::<f64>().ok()? > 0.0).then_some(tid.parse().ok()?)
        });
        Ok(tids.collect())
    }
}

/// How many entries the maps hold that the process has open.
fn map_entries(pid: u32) -> anyhow::Result<usize> {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo"))?;
    let ids: BTreeSet<u32> = files
        .filter_map(|file| fs::read_to_string(file.ok()?.path()).ok())
        .filter_map(|text| {
            let id = text.lines().find_map(|line| line.strip_prefix("map_id:"));
            id?.trim().parse().ok()
        })
        .collect();
    let mut entries = 0;
    for id in ids {
        let map =
            MapHandle::from_map_id(id).with_context(|| format!("cannot open BPF map {id}"))?;
        entries += match map.map_type() {
            MapType::Hash => map.keys().count(),
            MapType::TaskStorage => tasks_in(&map)?,
            _ => 0,
        };
    }
    Ok(entries)
}

/// How many tasks have an entry in a map of theirs, which cannot be listed.
fn tasks_in(map: &MapHandle) -> anyhow::Result<usize> {
    let mut count = 0;
    for process in fs::read_dir("/proc")? {
        let threads = fs::read_dir(process?.path().join("task"));
        for thread in threads.into_iter().flatten().flatten() {
            let tid = thread.file_name();
            let tid = tid.to_str().and_then(|tid| tid.parse().ok());
            // One that has ended meanwhile has no entry.
            let task = tid
                .and_then(Pid::from_raw)
                .and_then(|tid| pidfd_open(tid, PidfdFlags::from_bits_retain(PIDFD_THREAD)).ok());
            let Some(task) = task else { continue };
            let key = task.as_raw_fd().to_ne_bytes();
            let entry = map.lookup(&key, MapFlags::ANY);
            count += usize::from(entry.is_ok_and(|entry| entry.is_some()));
        }
    }
    Ok(count)
}
