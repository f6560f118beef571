//! Comma-separated values: one row for each wakeup, its time in nanoseconds in the first column.
//! Further columns are not read. The rows belong to one task, number 0.

use onbeat_model::{Burst, Event, Instant, Name, Task, TaskId};

use super::lines::Lines;
use super::text::excerpt;
use super::{Format, ReadError, Recording};

const TASK: TaskId = TaskId::recorded(0);

/// A heading with one of these says that the rows are of several threads.
const THREADS: [&str; 6] = ["tid", "utid", "pid", "upid", "thread", "comm"];

pub(super) fn time(row: &str) -> Option<Instant> {
    let first = row.split([',', ';', '\t']).next()?.trim();
    let digits = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| first.parse().ok().map(Instant::from_ns))?
}

pub(super) fn is_row(row: &str) -> bool {
    let first = row.split([',', ';', '\t']).next().unwrap_or("").trim();
    first.len() == row.trim().len() && time(row).is_some()
        || first.len() < row.trim().len() && first.parse::<f64>().is_ok()
}

pub(super) fn read(lines: &mut Lines<'_>) -> Result<Recording, ReadError> {
    let mut times: Vec<Instant> = Vec::new();
    let mut warnings = Vec::new();
    let (mut columns, mut backwards) = (0, 0_usize);
    while let Some(line) = lines.next()? {
        let row = line.text.trim();
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        let at = time(row);
        let has = row.split([',', ';', '\t']).count();
        if !line.ended {
            let shortened = has < columns || at < times.last().copied();
            if at.is_none() || shortened {
                warnings.push(line.cut_off());
                break;
            }
        }
        columns = has;
        match at {
            Some(at) => {
                backwards += usize::from(times.last().is_some_and(|&last| at <= last));
                times.push(at);
            }
            None if times.is_empty() && line.number == 1 => {
                let is_thread = |name: &&str| THREADS.contains(&name.trim_matches([' ', '"']));
                if let Some(column) = row.split([',', ';', '\t']).find(is_thread) {
                    warnings.push(format!(
                        "all rows are read as those of one thread, whatever {column} says: write a file \
                         for each thread"
                    ));
                }
            }
            None => {
                let problem = format!(
                    "the first column is no time in whole nanoseconds: '{}'; correct or remove the line",
                    excerpt(row)
                );
                let number = line.number;
                return Err(lines.broken(number, problem));
            }
        }
    }
    if backwards > 8 && backwards * 4 > times.len() {
        return Err(lines.refused(
            "the numbers of its first column do not grow: that must be the time in whole nanoseconds",
        ));
    }
    times.sort_unstable();
    let task = Task {
        id: TASK,
        pid: 0,
        comm: Name::from("csv"),
    };
    let at = times.first().copied().unwrap_or_default();
    let mut events = vec![Event::Tracked { at, task }];
    let bursts = times.into_iter().map(|at| Burst::pulse(TASK, at));
    events.extend(bursts.map(Event::Burst));
    Ok(Recording::of(Format::Csv, None, events, warnings))
}
