//! The machine an experiment runs on: programs started and always ended, load, the display.

mod display;
mod onbeat;
mod program;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::results::Ran;
pub(crate) use display::Display;
pub(crate) use onbeat::{Onbeat, OnbeatReport, ThreadFigures, binary};
pub(crate) use program::Program;

/// How often everything that waits looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug)]
struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

pub(crate) fn was_interrupted(error: &anyhow::Error) -> bool {
    error.is::<Interrupted>()
}

pub(crate) struct Machine {
    out: PathBuf,
    interrupted: Arc<AtomicBool>,
    tables: RefCell<Vec<NamedTable>>,
}

/// A table in Markdown, its name, and where it comes from.
type NamedTable = (String, String, Ran);

/// Compiles a C program, a path below `experiments`, into `folder`.
pub(crate) fn compile<'a>(
    source: &str,
    options: impl IntoIterator<Item = &'a str>,
    folder: &Path,
) -> anyhow::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let program = folder.join(source.file_stem().unwrap_or_default());
    let compiled = Command::new("cc")
        .args(["-O2", "-Wall", "-o"])
        .arg(&program)
        .arg(&source)
        .args(options)
        .status()
        .context("cannot start cc")?;
    if !compiled.success() {
        let source = source.display();
        bail!("{source} does not compile: run `scripts/setup.sh experiments`");
    }
    Ok(program)
}

impl Machine {
    /// Listens for Ctrl-C from now on.
    pub(crate) fn new(out: PathBuf) -> anyhow::Result<Self> {
        fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        Ok(Self {
            out,
            interrupted,
            tables: RefCell::default(),
        })
    }

    /// An error without root, which everything on the live kernel needs.
    pub(crate) fn need_root(&self) -> anyhow::Result<()> {
        if !rustix::process::geteuid().is_root() {
            bail!("reservations and tracing need root: run it with sudo, or as `make demo` does");
        }
        Ok(())
    }

    pub(crate) fn out(&self) -> &Path {
        &self.out
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.out.join(name)
    }

    pub(crate) fn cpus() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// The kernel, the CPU, and the load average.
    pub(crate) fn facts(&self) -> [String; 3] {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or("unknown", |(_, name)| name.trim());
        let (kernel, load) = (read("/proc/sys/kernel/osrelease"), read("/proc/loadavg"));
        [kernel.trim(), model, load.trim()].map(str::to_owned)
    }

    /// Keeps a table until [`take_tables`](Self::take_tables).
    pub(crate) fn keep(&self, name: &str, table: String, ran: &Ran) {
        let table = (name.to_owned(), table, ran.clone());
        self.tables.borrow_mut().push(table);
    }

    pub(crate) fn take_tables(&self) -> Vec<NamedTable> {
        self.tables.take()
    }

    pub(crate) fn wait(&self, time: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.go_on()?;
            std::thread::sleep(LOOK_EVERY.min(end.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Waits until `done` says so, at most for `patience`; tells whether it did.
    pub(crate) fn wait_for(
        &self,
        patience: Duration,
        mut done: impl FnMut() -> bool,
    ) -> anyhow::Result<bool> {
        let end = Instant::now() + patience;
        while !done() {
            self.go_on()?;
            if Instant::now() >= end {
                return Ok(false);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(true)
    }

    /// Runs a command until it ends, at most for `patience`; tells whether it succeeded. Its
    /// standard error goes to the file `messages`.
    pub(crate) fn run(
        &self,
        command: Command,
        messages: &Path,
        patience: Duration,
    ) -> anyhow::Result<bool> {
        let mut program = Program::start(command, messages)?;
        let mut status = None;
        self.wait_for(patience, || {
            status = program.ended();
            status.is_some()
        })?;
        Ok(status.is_some_and(|status| status.success()))
    }

    /// An error if the experiment was interrupted.
    pub(crate) fn go_on(&self) -> anyhow::Result<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            bail!(Interrupted);
        }
        Ok(())
    }
}

/// The CPU time that a thread has had, or the first thread of a process; `folder` is its own in
/// `/proc`.
pub(crate) fn cpu_ns(folder: &Path) -> Option<u64> {
    let told = fs::read_to_string(folder.join("schedstat")).ok()?;
    told.split_whitespace().next()?.parse().ok()
}

/// Programs that want all the CPU time there is.
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
