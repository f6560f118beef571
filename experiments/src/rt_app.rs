//! rt-app: a program whose threads are periodic by construction, and say themselves how late they
//! were. (The successor of the one of LFS++, section 7.2.)

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::machine::{Hogs, Machine, Program};
use crate::results::quantile;

/// One of its threads, or `instances` equal ones.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Its name; at most 12 characters, so that its thread's name is it.
    pub(crate) name: &'static str,
    /// From one release to the next.
    pub(crate) period_us: u64,
    /// The CPU time of each job.
    pub(crate) run_us: u64,
    /// How many of them.
    pub(crate) instances: u32,
    /// The SCHED_DEADLINE runtime that it sets for itself; the kernel's default scheduler if none.
    pub(crate) reserved_us: Option<u64>,
}

/// How long one round of its busy loop takes. Measured by the experiment itself, since rt-app
/// measures it wrong by half on a busy machine.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Calibration {
    ns_per_loop: u64,
}

/// What one thread's log says.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Jobs {
    /// Jobs after the time that was left out.
    pub(crate) jobs: usize,
    /// Those that ended after the next release.
    pub(crate) missed: usize,
    /// From release to end, in ms: the median.
    pub(crate) response_p50_ms: f64,
    /// 99% took no longer.
    pub(crate) response_p99_ms: f64,
}

impl Jobs {
    /// The share of jobs that were late.
    pub(crate) fn miss_ratio(&self) -> f64 {
        self.missed as f64 / self.jobs.max(1) as f64
    }
}

impl Calibration {
    /// Runs one second of jobs at real-time priority, so that nothing interrupts them.
    pub(crate) fn measure(machine: &Machine) -> anyhow::Result<Self> {
        const GUESS: u64 = 30;
        let probe = Task {
            name: "probe",
            period_us: 4000,
            run_us: 1000,
            instances: 1,
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
        let ran: Vec<f64> = rows(folder.path(), "probe")?
            .iter()
            .map(|row| row.ran_us)
            .collect();
        let ns_per_loop = (quantile(&ran, 0.5) * GUESS as f64 / 1000.0).round() as u64;
        if ns_per_loop == 0 {
            bail!("rt-app's busy loop cannot be measured");
        }
        Ok(Self { ns_per_loop })
    }
}

/// A run of rt-app: its configuration on disk, and its logs afterwards.
pub(crate) struct RtApp {
    folder: tempfile::TempDir,
    file: PathBuf,
    time: Duration,
}

/// The CPU time that each thread took, as a share of a CPU, by its name.
pub(crate) type Used = BTreeMap<String, f64>;

impl RtApp {
    /// The given tasks, for `time`.
    pub(crate) fn new(
        tasks: &[Task],
        calibration: Calibration,
        time: Duration,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let config = configuration(tasks, calibration, time, folder.path());
        let file = write(&config, folder.path())?;
        Ok(Self { folder, file, time })
    }

    /// Its configuration: what is to be given to rt-app.
    pub(crate) fn configuration(&self) -> &Path {
        &self.file
    }

    /// Runs it with `command` (rt-app, or something that starts it) until it ends, with `hogs.0` CPU
    /// hogs from `hogs.1` after its start on, and gives the CPU time of each of its threads after
    /// the first `leave_out`.
    pub(crate) fn run(
        &self,
        machine: &Machine,
        mut command: Command,
        hogs: (usize, Duration),
        leave_out: Duration,
    ) -> anyhow::Result<Used> {
        let (hogs, after) = hogs;
        let early = match after {
            Duration::ZERO if hogs > 0 => Some(Hogs::start(machine, hogs)?),
            _ => None,
        };
        command.arg(&self.file).stdout(Stdio::null());
        let mut program = Program::start(command, &machine.file("rt-app.stderr"))?;
        let pid = program.pid();
        let began = Instant::now();
        machine.wait(after)?;
        let _hogs = match early {
            None if hogs > 0 => Some(Hogs::start(machine, hogs)?),
            early => early,
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

    /// What the log of the task `name` says, without the jobs released in the first `leave_out`.
    pub(crate) fn jobs(&self, name: &str, leave_out: Duration) -> anyhow::Result<Jobs> {
        let rows = rows(self.folder.path(), name)?;
        let kept: Vec<&Row> = rows
            .iter()
            .filter(|row| row.released_us >= leave_out.as_micros() as f64)
            .collect();
        let responses: Vec<f64> = kept.iter().map(|row| row.response_us / 1000.0).collect();
        Ok(Jobs {
            jobs: kept.len(),
            missed: kept.iter().filter(|row| row.slack_us < 0.0).count(),
            response_p50_ms: quantile(&responses, 0.50),
            response_p99_ms: quantile(&responses, 0.99),
        })
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

fn configuration(tasks: &[Task], calibration: Calibration, time: Duration, folder: &Path) -> Value {
    let tasks: Map<String, Value> = tasks
        .iter()
        .map(|task| {
            let timer = json!({ "ref": "unique", "period": task.period_us, "mode": "absolute" });
            let mut value = json!({
                "instance": task.instances,
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

/// One line of a log: one job.
struct Row {
    ran_us: f64,
    released_us: f64,
    response_us: f64,
    slack_us: f64,
}

/// The log of the first instance of `task`: columns idx, perf, run, period, start, end, rel_st, slack,
/// c_duration, c_period, wu_lat, all times in us. `rel_st` is when the job started, since the
/// thread did; the response time counts from the release, which is `slack` and the period away from
/// the end.
fn rows(folder: &Path, task: &str) -> anyhow::Result<Vec<Row>> {
    let prefix = format!("log-{task}-");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
        })
        .collect();
    files.sort();
    let file = files
        .first()
        .with_context(|| format!("rt-app wrote no log for {task}: see rt-app.stderr"))?;
    let text = fs::read_to_string(file)?;
    let rows: Vec<Row> = text.lines().filter_map(row).collect();
    if rows.is_empty() {
        bail!("rt-app ran no job of {task}; if its reservation was refused, rt-app.stderr says so");
    }
    Ok(rows)
}

fn row(line: &str) -> Option<Row> {
    let cells: Vec<f64> = line
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let &[
        _,
        _,
        ran_us,
        _,
        _,
        _,
        released_us,
        slack_us,
        _,
        period_us,
        _,
    ] = cells.as_slice()
    else {
        return None;
    };
    Some(Row {
        ran_us,
        released_us,
        response_us: period_us - slack_us,
        slack_us,
    })
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
            let read = |name: &str| fs::read_to_string(thread.join(name)).unwrap_or_default();
            let statistics = read("schedstat");
            let ns = statistics
                .split_whitespace()
                .next()
                .and_then(|ns| ns.parse::<u64>().ok());
            if let Some(ns) = ns {
                *executed.entry(read("comm").trim().to_owned()).or_default() += ns;
            }
        }
    }
    executed
}

fn children(pid: u32) -> Vec<u32> {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_a_job_and_its_head_is_none() {
        let job = row(
            "   0    21448      450     3501      2200023441      2200026942            7298       2951       1051       3505         99",
        );
        let job = job.unwrap();
        assert_eq!(job.ran_us, 450.0);
        assert_eq!(job.released_us, 7298.0);
        assert_eq!(job.slack_us, 2951.0);
        assert_eq!(job.response_us, 554.0);
        assert!(row("#idx     perf      run   period").is_none());
        assert!(row("# Policy : SCHED_OTHER priority : 0").is_none());
    }
}
