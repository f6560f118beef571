//! rt-app: a program whose threads are periodic by construction, and say themselves how late they
//! were. (The successor of the one of LFS++, section 7.2.)

mod log;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use onbeat_sense::identity::children;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::machine::{Hogs, Machine, Program, cpu_ns};

pub(crate) use log::{Jobs, Log};

#[derive(Clone, Debug)]
pub(crate) struct RtAppTask {
    /// Its name; at most 12 characters, so that its thread's name is it.
    pub(crate) name: &'static str,
    /// From one release to the next.
    pub(crate) period_us: u64,
    pub(crate) run_us: u64,
    /// The SCHED_DEADLINE runtime that it sets for itself; the kernel's default scheduler if none.
    pub(crate) reserved_us: Option<u64>,
}

/// How long one round of its busy loop takes. Measured by the experiment itself, since rt-app
/// measures it wrong by half on a busy machine.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Calibration {
    ns_per_loop: u64,
}

impl Calibration {
    /// Runs one second of jobs at real-time priority, so that nothing interrupts them.
    pub(crate) fn measure(machine: &Machine) -> anyhow::Result<Self> {
        const GUESS: u64 = 30;
        let probe = RtAppTask {
            name: "probe",
            period_us: 4000,
            run_us: 1000,
            reserved_us: None,
        };
        let guess = Self { ns_per_loop: GUESS };
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let mut config = configuration(&[probe], guess, Duration::from_secs(1), folder.path());
        config["global"]["default_policy"] = json!("SCHED_FIFO");
        config["tasks"]["probe"]["priority"] = json!(10);
        let file = write(&config, folder.path())?;
        run(
            machine,
            Command::new("rt-app"),
            &file,
            Duration::from_secs(1),
        )?;
        let ran_us = Log::read(folder.path(), "probe")?.median_ran_us();
        let ns_per_loop = (ran_us * GUESS as f64 / 1000.0).round() as u64;
        if ns_per_loop == 0 {
            bail!("rt-app's busy loop cannot be measured");
        }
        Ok(Self { ns_per_loop })
    }
}

pub(crate) struct RtApp {
    folder: tempfile::TempDir,
    file: PathBuf,
    time: Duration,
}

/// The CPU time that each thread took, as a share of a CPU, by its name.
pub(crate) type Used = BTreeMap<String, f64>;

impl RtApp {
    pub(crate) fn new(
        tasks: &[RtAppTask],
        calibration: Calibration,
        time: Duration,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let config = configuration(tasks, calibration, time, folder.path());
        let file = write(&config, folder.path())?;
        Ok(Self { folder, file, time })
    }

    /// Runs it with `command` (rt-app, or something that starts it) until it ends, with `hogs.0`
    /// CPU hogs from `hogs.1` after its start on, and gives the CPU time of each of its threads
    /// after the first `leave_out`.
    pub(crate) fn run(
        &self,
        machine: &Machine,
        mut command: Command,
        hogs: (usize, Duration),
        leave_out: Duration,
    ) -> anyhow::Result<Used> {
        let (hogs, after) = hogs;
        let early = match after {
            Duration::ZERO => Some(Hogs::start(machine, hogs)?),
            _ => None,
        };
        command.arg(&self.file).stdout(Stdio::null());
        let mut program = Program::start(command, &machine.file("rt-app.stderr"))?;
        let pid = program.pid();
        let began = Instant::now();
        machine.wait(after)?;
        let _hogs = match early {
            None => Hogs::start(machine, hogs)?,
            Some(early) => early,
        };
        let mut first = None;
        let mut last = (Instant::now(), BTreeMap::new());
        let ended = machine.wait_for(self.time + Duration::from_secs(60), || {
            let now = (Instant::now(), executed_by_name(pid));
            // A thread that has ended is no longer told of: what was said before stands.
            if now.0.duration_since(began) >= leave_out && now.1.len() >= last.1.len() {
                first.get_or_insert_with(|| now.clone());
                last = now;
            }
            program.ended().is_some()
        })?;
        if !ended {
            bail!("rt-app does not end");
        }
        let (since, before) = first.unwrap_or_else(|| last.clone());
        let elapsed = last.0.duration_since(since).as_secs_f64().max(1e-9);
        Ok(last
            .1
            .into_iter()
            .map(|(name, ns)| {
                let used = ns.saturating_sub(before.get(&name).copied().unwrap_or(0));
                (name, used as f64 / 1e9 / elapsed)
            })
            .collect())
    }

    pub(crate) fn log(&self, name: &str) -> anyhow::Result<Log> {
        Log::read(self.folder.path(), name)
    }
}

fn run(machine: &Machine, mut command: Command, file: &Path, time: Duration) -> anyhow::Result<()> {
    command.arg(file).stdout(Stdio::null());
    let mut program = Program::start(command, &machine.file("rt-app.stderr"))?;
    let patience = time + Duration::from_secs(60);
    if machine.wait_for(patience, || program.ended().is_some())? {
        Ok(())
    } else {
        bail!("rt-app does not end")
    }
}

fn configuration(
    tasks: &[RtAppTask],
    calibration: Calibration,
    time: Duration,
    folder: &Path,
) -> Value {
    let tasks: Map<String, Value> = tasks
        .iter()
        .map(|task| {
            let timer = json!({ "ref": "unique", "period": task.period_us, "mode": "absolute" });
            let mut value = json!({
                "instance": 1,
                "loop": -1,
                "run": task.run_us,
                "timer": timer,
            });
            if let Some(runtime_us) = task.reserved_us {
                value["policy"] = json!("SCHED_DEADLINE");
                value["dl-runtime"] = json!(runtime_us);
                value["dl-period"] = json!(task.period_us);
                value["dl-deadline"] = json!(task.period_us);
            }
            (task.name.to_owned(), value)
        })
        .collect();
    json!({
        "tasks": tasks,
        "global": {
            "duration": time.as_secs(),
            "calibration": calibration.ns_per_loop,
            "default_policy": "SCHED_OTHER",
            "pi_enabled": false,
            "lock_pages": false,
            "logdir": folder,
            "log_basename": "log",
            "ftrace": false,
            "gnuplot": false,
        },
    })
}

fn write(configuration: &Value, folder: &Path) -> anyhow::Result<PathBuf> {
    let file = folder.join("rt-app.json");
    fs::write(&file, serde_json::to_string_pretty(configuration)?)
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// The CPU time in ns of each thread of `pid` and of its children, by name; those of one name
/// together.
fn executed_by_name(pid: u32) -> BTreeMap<String, u64> {
    let mut executed = BTreeMap::new();
    for process in [vec![pid], children(pid)].concat() {
        let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
            continue;
        };
        for thread in threads.filter_map(|entry| Some(entry.ok()?.path())) {
            let comm = fs::read_to_string(thread.join("comm")).unwrap_or_default();
            if let Some(ns) = cpu_ns(&thread) {
                *executed.entry(comm.trim().to_owned()).or_default() += ns;
            }
        }
    }
    executed
}
