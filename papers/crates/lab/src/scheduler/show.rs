//! The figures of a running scheduler, a line for each interval.

use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use onbeat_schedulers::{Running, Value};
use serde::Serialize;
use serde_json::Map;

use super::chooser::Chooser;
use super::groups::{self, GroupTold};
use super::object;
use crate::cli::StartArgs;

/// Rows between two headings.
const ROWS: u32 = 20;

enum Form {
    Json,
    Table,
    Nothing,
}

/// Shows what has changed since it was last asked.
pub(super) struct Show {
    form: Form,
    tasks: bool,
    began: Instant,
    before: Vec<Value>,
    rows: u32,
}

/// The output of `start --json` for each interval; `docs/formats.md` describes it.
#[derive(Serialize)]
struct ShownInterval<'a> {
    scheduler: &'a str,
    at_ns: u64,
    counts: Map<String, serde_json::Value>,
    machine: Map<String, serde_json::Value>,
    tasks: Vec<TaskTold>,
    groups: Vec<GroupTold>,
}

#[derive(Serialize)]
struct TaskTold {
    tid: u32,
    comm: String,
    knows: Map<String, serde_json::Value>,
}

impl Show {
    pub(super) fn new(args: &StartArgs, tasks: bool) -> Self {
        let form = match (args.quiet, args.json) {
            (true, _) => Form::Nothing,
            (_, true) => Form::Json,
            _ => Form::Table,
        };
        Self {
            form,
            tasks,
            began: Instant::now(),
            before: Vec::new(),
            rows: 0,
        }
    }

    pub(super) fn turn(
        &mut self,
        running: &Running,
        chooser: Option<&Chooser>,
        groups: Vec<GroupTold>,
    ) -> anyhow::Result<()> {
        match self.form {
            Form::Nothing => Ok(()),
            Form::Json => self.json(running, chooser, groups),
            Form::Table => self.row(running),
        }
    }

    /// Shows what the groups have used, at the end.
    pub(super) fn close(&self, told: &[GroupTold]) -> anyhow::Result<()> {
        match self.form {
            Form::Table => Ok(groups::show(told)?),
            Form::Json | Form::Nothing => Ok(()),
        }
    }

    fn json(
        &self,
        running: &Running,
        chooser: Option<&Chooser>,
        groups: Vec<GroupTold>,
    ) -> anyhow::Result<()> {
        let chosen = chooser.filter(|_| self.tasks).into_iter();
        let tasks = chosen.flat_map(Chooser::tasks).filter_map(|task| {
            let comm = std::fs::read_to_string(format!("/proc/{}/comm", task.tid)).ok()?;
            Some(TaskTold {
                tid: task.tid,
                comm: comm.trim_end().to_owned(),
                knows: object(&running.task(task.tid)?),
            })
        });
        let turn = ShownInterval {
            scheduler: running.name(),
            at_ns: onbeat_kernel::clock::now().as_ns(),
            counts: object(&running.statistics()?),
            machine: object(&running.machine()),
            tasks: tasks.collect(),
            groups,
        };
        let mut output = io::stdout().lock();
        writeln!(output, "{}", serde_json::to_string(&turn)?)?;
        Ok(output.flush()?)
    }

    fn row(&mut self, running: &Running) -> anyhow::Result<()> {
        let counts = running.statistics()?;
        let mut output = io::stdout().lock();
        if self.rows.is_multiple_of(ROWS) {
            let names: Vec<String> = counts.iter().map(|c| format!("{:>14}", c.name)).collect();
            writeln!(output, "{:>8}{}", "time", names.concat())?;
        }
        self.rows += 1;
        let since = counts.iter().enumerate().map(|(index, count)| {
            let before = self.before.get(index).map_or(0, |before| before.value);
            format!("{:>14}", count.value - before)
        });
        let since: Vec<String> = since.collect();
        let seconds = self.began.elapsed().as_secs_f64();
        writeln!(output, "{seconds:>7.1}s{}", since.concat())?;
        if io::stdout().is_terminal() {
            output.flush()?;
        }
        self.before = counts;
        Ok(())
    }
}
