//! A timeline for ui.perfetto.dev, in the Trace Event Format (the JSON that Chrome writes), which Perfetto documents as
//! one that it imports.
//!
//! One track for each CPU shows which task it ran, at which speed; one for each task shows its jobs from
//! release to end, the missed ones by name, and where a budget ran out.

use std::io::{self, Write};

use onbeat_model::Instant;
use serde_json::{Value, json};

use crate::observe::{Completion, Stretch};
use crate::{CpuIndex, Observer, TaskIndex};

/// Writes the timeline. The first error ends the writing; [`finish`](Self::finish) tells it.
pub struct Timeline<W> {
    output: W,
    names: Vec<String>,
    jobs: u64,
    failed: Option<io::Error>,
}

/// The "process" under which the CPUs are shown, and the one of the tasks.
const CPUS: u32 = 1;
const TASKS: u32 = 2;

impl<W: Write> Timeline<W> {
    /// Writes the names of the tracks.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn new(mut output: W, cpus: CpuIndex, names: Vec<String>) -> io::Result<Self> {
        write!(
            output,
            "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}",
            track(CPUS, None, "CPUs")
        )?;
        writeln!(output, ",\n{}", track(TASKS, None, "tasks"))?;
        for cpu in 0..cpus {
            writeln!(output, ",{}", track(CPUS, Some(cpu), &format!("CPU {cpu}")))?;
        }
        for (task, name) in names.iter().enumerate() {
            writeln!(output, ",{}", track(TASKS, Some(task), name))?;
        }
        Ok(Self {
            output,
            names,
            jobs: 0,
            failed: None,
        })
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => {
                writeln!(self.output, "]}}")?;
                self.output.flush()
            }
        }
    }

    fn name(&self, task: TaskIndex) -> &str {
        self.names.get(task).map_or("", String::as_str)
    }

    fn event(&mut self, event: &Value) {
        if self.failed.is_none() {
            self.failed = writeln!(self.output, ",{event}").err();
        }
    }
}

fn track(process: u32, thread: Option<usize>, name: &str) -> Value {
    match thread {
        None => {
            json!({"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}})
        }
        Some(thread) => {
            json!({"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}})
        }
    }
}

/// The format counts microseconds.
fn us(at: Instant) -> f64 {
    at.as_ns() as f64 / 1e3
}

impl<W: Write> Observer for Timeline<W> {
    fn ran(&mut self, stretch: &Stretch) {
        let event = json!({
            "ph": "X", "cat": "running", "name": self.name(stretch.task),
            "pid": CPUS, "tid": stretch.cpu,
            "ts": us(stretch.from), "dur": stretch.to.since(stretch.from).as_ns() as f64 / 1e3,
            "args": {"khz": stretch.speed.as_khz()},
        });
        self.event(&event);
    }

    fn job(&mut self, job: &Completion) {
        let name = if job.missed() { "missed" } else { "job" };
        let id = self.jobs;
        self.jobs += 1;
        // Jobs of one task may overlap, which only asynchronous events may.
        let begin = json!({
            "ph": "b", "cat": "job", "name": name, "id": id,
            "pid": TASKS, "tid": job.task, "ts": us(job.release),
            "args": {
                "task": self.name(job.task), "job": job.number,
                "deadline_ns": job.deadline, "demand_ns": job.demand.as_span(),
            },
        });
        let end = json!({
            "ph": "e", "cat": "job", "name": name, "id": id,
            "pid": TASKS, "tid": job.task, "ts": us(job.ended),
        });
        self.event(&begin);
        self.event(&end);
    }

    fn exhausted(&mut self, task: TaskIndex, at: Instant) {
        let event = json!({
            "ph": "i", "s": "t", "cat": "budget", "name": "budget ran out",
            "pid": TASKS, "tid": task, "ts": us(at),
        });
        self.event(&event);
    }
}
