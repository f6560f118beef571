//! Demands and releases from a file: a recording of threads, or CSV with a demand on each row.

use std::collections::HashSet;
use std::path::Path;

use onbeat_model::{Event, Instant, Span, TaskId};
use onbeat_sense::recording;

use super::file::RecordedKey;
use crate::Work;
use crate::workload::SharedList;

/// The behaviour of a thread: each burst a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RecordedBursts {
    pub(super) releases: SharedList<Instant>,
    pub(super) demands: SharedList<Work>,
}

pub(super) fn load(folder: &Path, recorded: &RecordedKey) -> Result<RecordedBursts, String> {
    let path = folder.join(&recorded.file);
    if path.extension().is_some_and(|extension| extension == "csv") {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        return csv(&text).map_err(|problem| format!("{}:{problem}", path.display()));
    }
    let recording = recording::read(&path).map_err(|error| error.to_string())?;
    let wanted: HashSet<TaskId> = recording
        .tasks
        .iter()
        .filter(|task| match &recorded.thread {
            None => true,
            Some(thread) => task.comm.to_text() == *thread || task.id.tid.to_string() == *thread,
        })
        .map(|task| task.id)
        .collect();
    if recorded.thread.is_none() && wanted.len() > 1 {
        return Err(format!(
            "{} holds {} threads: name one, as in thread = \"mplayer\"; `onbeat analyze` shows them",
            path.display(),
            wanted.len()
        ));
    }
    let bursts = recording.events.iter().filter_map(|event| match event {
        Event::Burst(burst) if wanted.contains(&burst.task) => Some((burst.woke, burst.executed)),
        _ => None,
    });
    let rows: Vec<(Instant, Span)> = bursts.collect();
    if rows.is_empty() {
        let thread = recorded.thread.as_deref().unwrap_or("any thread");
        return Err(format!(
            "{} holds no burst of {thread}: `onbeat analyze` shows the threads that it holds",
            path.display()
        ));
    }
    Ok(trace(rows))
}

fn trace(mut rows: Vec<(Instant, Span)>) -> RecordedBursts {
    rows.sort_by_key(|row| row.0);
    let first = rows.first().map_or(Instant::ZERO, |row| row.0);
    let least = Span::from_ns(1);
    RecordedBursts {
        releases: rows
            .iter()
            .map(|row| Instant::ZERO + row.0.since(first))
            .collect(),
        demands: rows
            .iter()
            .map(|row| Work::at_full_speed(row.1.max(least)))
            .collect(),
    }
}

/// Whether `text` is CSV that [`DemandKey::Recorded`](super::file::DemandKey::Recorded) takes: how
/// many jobs it holds.
pub fn parse_demands(text: &str) -> Result<usize, String> {
    csv(text).map(|trace| trace.demands.len())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedRow<'a> {
    pub(crate) task: &'a str,
    pub(crate) release: Option<Instant>,
    pub(crate) demand: Span,
}

/// Jobs that follow each other where nothing says when they were released.
pub(super) fn csv(text: &str) -> Result<RecordedBursts, String> {
    let mut at = Instant::ZERO;
    let rows = rows(text)?.into_iter().map(|row| {
        let release = row.release.unwrap_or(at);
        at = release + row.demand;
        (release, row.demand)
    });
    Ok(trace(rows.collect()))
}

/// Rows with a heading: `demand_ns` (or `executed_ns`), and `release_ns` and `task` if there are
/// such. The error begins with the number of its line.
pub(crate) fn rows(text: &str) -> Result<Vec<RecordedRow<'_>>, String> {
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let (heading_line, heading) = lines.next().ok_or("1: it is empty")?;
    let columns: Vec<&str> = heading.split(',').map(str::trim).collect();
    let find = |name: &str| columns.iter().position(|&column| column == name);
    let demand = find("demand_ns")
        .or_else(|| find("executed_ns"))
        .ok_or_else(|| {
            format!("{heading_line}: no column is called demand_ns or executed_ns: name one so")
        })?;
    let (release, task) = (find("release_ns"), find("task"));
    let mut rows = Vec::new();
    for (number, line) in lines {
        let cell = |column: usize| line.split(',').nth(column).unwrap_or_default().trim();
        let time = |column: usize| -> Result<u64, String> {
            let cell = cell(column);
            cell.parse().map_err(|_| {
                format!("{number}: '{cell}' is no time in whole nanoseconds: correct it")
            })
        };
        rows.push(RecordedRow {
            task: task.map_or("", cell),
            release: release.map(time).transpose()?.map(Instant::from_ns),
            demand: Span::from_ns(time(demand)?),
        });
    }
    if rows.is_empty() {
        return Err(format!("{heading_line}: no row follows the heading"));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_demands_with_or_without_releases() {
        let with = csv("task,release_ns,demand_ns\na,40,5\n# a remark\n\na,90,7\n").unwrap();
        let releases: Vec<u64> = with.releases.iter().map(|at| at.as_ns()).collect();
        assert_eq!(releases, [0, 50]);
        let without = csv("executed_ns\n5\n0\n").unwrap();
        assert_eq!(without.demands.len(), 2);
        assert_eq!(without.demands[1], Work::at_full_speed(Span::from_ns(1)));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, told) in [
            ("", "1: it is empty"),
            ("a,b\n1,2\n", "1: no column"),
            ("demand_ns\n\n", "1: no row"),
            ("demand_ns\n5\n-6\n", "3: '-6'"),
            ("a,demand_ns\n5\n", "2: ''"),
        ] {
            let error = csv(text).unwrap_err();
            assert!(error.starts_with(told), "{error}");
        }
    }
}
