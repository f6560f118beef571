//! The threads of a recording as tasks of a simulation: when each job was released, and what it
//! took.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use onbeat_infer::recorded::{self, Recorded};
use onbeat_model::{Burst, Event, Instant, Name, Quantiles, Rhythm, Span, Task, TaskId};
use onbeat_sense::recording::{self, ReadError, Recording};

use crate::Work;
use crate::scenario::recorded::{RecordedRow, rows};
use crate::workload::{JobSpec, NEVER, SharedList};

#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error(transparent)]
    Recording(#[from] ReadError),
    /// It is CSV of jobs, and something is wrong with it.
    #[error("{path}:{problem}")]
    Csv { path: PathBuf, problem: String },
    #[error("cannot read {path}: {source}")]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    /// It is not known what its jobs took.
    #[error(
        "{path} tells when threads woke and not what CPU time they took: record with `onbeat record`, with the switches \
         (sched_switch) in ftrace and perf, or with a column demand_ns in CSV"
    )]
    NoExecution { path: PathBuf },
}

/// The threads of one recording, or of several that begin together.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    pub list: Vec<ComparedThread>,
    /// From the recording's begin to the last deadline.
    pub duration: Span,
    /// How many CPUs the machine had on which it was made, if the recording says so.
    pub cpus: Option<usize>,
    /// The command that was recorded, if the recording says so.
    pub command: Vec<String>,
    /// The warnings for the reader of the recording.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct ComparedThread {
    pub task: Task,
    /// Its rhythm; none if it was not periodic. Each of its bursts is a job then, without a
    /// deadline.
    pub rhythm: Option<Rhythm>,
    /// Its jobs; times count from the recording's begin.
    pub jobs: SharedList<JobSpec>,
    /// How they fared in the recording.
    pub seen: RecordedFigures,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedFigures {
    /// Those that ended after the next one's release.
    pub missed: u64,
    pub response_time: Option<Quantiles>,
    pub executed: Span,
}

impl Threads {
    /// Reads any recording that [`recording`] reads, or CSV of jobs: a heading with a column
    /// `demand_ns` or `executed_ns` and one `release_ns`, and if there are several threads one
    /// `task`.
    pub fn read(path: &Path) -> Result<Self, Unusable> {
        let threads = match jobs_csv(path)? {
            Some(text) => Self::from_csv(&text).map_err(|problem| Unusable::Csv {
                path: path.to_owned(),
                problem,
            })?,
            None => Self::of(&recording::read(path)?),
        };
        if threads.list.is_empty() {
            return Err(Unusable::NoExecution {
                path: path.to_owned(),
            });
        }
        Ok(threads)
    }

    pub fn of(recording: &Recording) -> Self {
        let mut bursts: HashMap<TaskId, Vec<Burst>> = HashMap::new();
        for event in &recording.events {
            if let Event::Burst(burst) = event {
                bursts.entry(burst.task).or_default().push(*burst);
            }
        }
        let tasks = recording.tasks.iter();
        let with_bursts = tasks.filter_map(|&task| Some((task, bursts.remove(&task.id)?)));
        let facts = recording.facts.as_ref();
        Self {
            cpus: facts
                .and_then(|facts| usize::try_from(facts.cpus).ok())
                .filter(|&cpus| cpus > 0),
            command: facts.map(|facts| facts.command.clone()).unwrap_or_default(),
            warnings: recording.warnings.clone(),
            ..Self::gather(with_bursts, recording.began, recording.ended)
        }
    }

    fn from_csv(text: &str) -> Result<Self, String> {
        let mut tasks: Vec<(Task, Vec<Burst>)> = Vec::new();
        let (mut began, mut ended) = (NEVER, Instant::ZERO);
        let mut at = Instant::ZERO;
        for RecordedRow {
            task: name,
            release,
            demand,
        } in rows(text)?
        {
            let woke = release.unwrap_or(at);
            let place = tasks
                .iter()
                .position(|(task, _)| task.comm == Name::from(name));
            let place = place.unwrap_or_else(|| {
                let tid = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
                let task = Task {
                    id: TaskId::recorded(tid),
                    pid: tid,
                    comm: Name::from(name),
                };
                tasks.push((task, Vec::new()));
                tasks.len() - 1
            });
            let burst = Burst::alone(tasks[place].0.id, woke, demand);
            at = burst.blocked;
            began = began.min(woke);
            ended = ended.max(burst.blocked);
            tasks[place].1.push(burst);
        }
        Ok(Self::gather(tasks.into_iter(), began, ended))
    }

    fn gather(
        tasks: impl Iterator<Item = (Task, Vec<Burst>)>,
        began: Instant,
        ended: Instant,
    ) -> Self {
        let list: Vec<ComparedThread> = tasks
            .filter(|(_, bursts)| bursts.iter().any(|burst| !burst.executed.is_zero()))
            .map(|(task, bursts)| ComparedThread::of(task, bursts, began, ended))
            .collect();
        let deadlines = list.iter().flat_map(|thread| thread.jobs.iter());
        let last = deadlines
            .map(|job| job.deadline)
            .filter(|&due| due < NEVER)
            .max();
        let until = Instant::ZERO + ended.since(began);
        Self {
            list,
            duration: last
                .map_or(until, |last| last.max(until))
                .since(Instant::ZERO),
            ..Self::default()
        }
    }

    /// These and others that begin with them.
    pub fn beside(mut self, others: Self) -> Self {
        self.list.extend(others.list);
        self.duration = self.duration.max(others.duration);
        self.cpus = self.cpus.max(others.cpus);
        self.warnings.extend(others.warnings);
        self
    }
}

/// The text of the file, if it is CSV with a heading that names what jobs took.
fn jobs_csv(path: &Path) -> Result<Option<String>, Unusable> {
    if path.extension().is_none_or(|extension| extension != "csv") {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).map_err(|source| Unusable::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let heading = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'));
    let names_demands = heading.is_some_and(|heading| {
        let mut columns = heading.split(',').map(str::trim);
        columns.any(|column| column == "demand_ns" || column == "executed_ns")
    });
    Ok(names_demands.then_some(text))
}

impl ComparedThread {
    fn of(task: Task, mut bursts: Vec<Burst>, began: Instant, ended: Instant) -> Self {
        bursts.sort_by_key(|burst| burst.woke);
        let rhythm = recorded::rhythms(&bursts, ended.since(began), ended)
            .first()
            .copied();
        let found = rhythm
            .map(|rhythm| recorded::jobs(&bursts, rhythm))
            .unwrap_or_default();
        let responses = found.iter().map(|recorded| recorded.job.response_time());
        let seen = RecordedFigures {
            missed: found
                .iter()
                .filter(|recorded| recorded.job.missed())
                .count() as u64,
            response_time: Quantiles::of(responses.collect()),
            executed: bursts.iter().map(|burst| burst.executed).sum(),
        };
        let jobs = if rhythm.is_some() {
            periodic(&found, began)
        } else {
            let bursts = bursts.iter();
            bursts.map(|burst| without_deadline(burst, began)).collect()
        };
        Self {
            task,
            rhythm,
            jobs,
            seen,
        }
    }
}

fn from(began: Instant, at: Instant) -> Instant {
    Instant::ZERO + at.since(began)
}

/// At least something: a job of nothing would not be seen.
fn work(executed: Span) -> Work {
    Work::at_full_speed(executed.max(Span::from_ns(1)))
}

fn periodic(found: &[Recorded], began: Instant) -> SharedList<JobSpec> {
    let mut busy_until = Instant::ZERO;
    let jobs = found.iter().map(|&Recorded { job, blocked }| {
        let release = from(began, job.release);
        // A job that was overdue was kept by the one before it, which the simulation has, too.
        let overdue = busy_until > job.release;
        busy_until = job.ended;
        JobSpec {
            release,
            ready: if overdue {
                release
            } else {
                release.max(from(began, job.woke))
            },
            expiry: None,
            deadline: release + job.deadline.since(job.release),
            demand: work(job.executed),
            bursts: job.bursts.max(1),
            // It blocked in any case.
            pause: (blocked / u64::from(job.bursts.saturating_sub(1).max(1))).max(Span::from_ns(1)),
        }
    });
    jobs.collect()
}

fn without_deadline(burst: &Burst, began: Instant) -> JobSpec {
    let release = from(began, burst.woke);
    JobSpec {
        release,
        ready: release,
        expiry: None,
        deadline: NEVER,
        demand: work(burst.executed),
        bursts: 1,
        pause: Span::ZERO,
    }
}
