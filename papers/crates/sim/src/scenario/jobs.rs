//! Every job as a row of CSV.

use std::io::{self, Write};

use crate::Observer;
use crate::observe::Completion;

/// Writes the rows. The first error ends the writing; [`finish`](Self::finish) returns it.
pub struct JobWriter<W> {
    output: W,
    names: Vec<String>,
    failed: Option<io::Error>,
}

impl<W: Write> JobWriter<W> {
    pub fn new(mut output: W, names: Vec<String>) -> io::Result<Self> {
        writeln!(
            output,
            "task,job,release_ns,started_ns,ended_ns,deadline_ns,demand_ns,executed_ns,missed,exhausted"
        )?;
        Ok(Self {
            output,
            names,
            failed: None,
        })
    }

    pub fn finish(mut self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.output.flush(),
        }
    }

    fn row(&mut self, job: &Completion) -> io::Result<()> {
        let name = self.names.get(job.task).map_or("", String::as_str);
        writeln!(
            self.output,
            "{name},{},{},{},{},{},{},{},{},{}",
            job.number,
            job.release.as_ns(),
            job.started.as_ns(),
            job.ended.as_ns(),
            job.deadline.as_ns(),
            job.demand.as_span().as_ns(),
            job.executed.as_ns(),
            u8::from(job.missed()),
            u8::from(job.exhausted),
        )
    }
}

impl<W: Write> Observer for JobWriter<W> {
    fn job(&mut self, job: &Completion) {
        if self.failed.is_none() {
            self.failed = self.row(job).err();
        }
    }
}
