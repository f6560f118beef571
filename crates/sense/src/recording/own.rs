//! onbeat's own recording: JSON lines, the first with the facts, then one event each.

use std::collections::HashMap;

use onbeat_model::{Burst, Event, Name, Task};

use super::lines::Lines;
use super::text::excerpt;
use super::{Format, ReadError, Recording};
use crate::recording::{FORMAT, Facts, VERSION};

/// The line is the first of such a recording, whatever its version.
pub(super) fn is_first_line(line: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Marked {
        format: String,
    }
    line.starts_with('{')
        && serde_json::from_str::<Marked>(line).is_ok_and(|marked| marked.format == FORMAT)
}

pub(super) fn read(lines: &mut Lines<'_>) -> Result<Recording, ReadError> {
    let path = lines.path().to_owned();
    let mut facts = None;
    let mut events: Vec<Event> = Vec::new();
    let mut warnings = Vec::new();
    while let Some(line) = lines.next()? {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        let broken = |problem: String| ReadError::BrokenLine {
            path: path.clone(),
            line: line.number,
            problem,
        };
        if facts.is_none() {
            let read: Facts = serde_json::from_str(text)
                .map_err(|error| broken(format!("the facts are broken ({error}): record again")))?;
            if read.version != VERSION {
                return Err(broken(format!(
                    "this is version {} of the format, and this onbeat reads version {VERSION}: use \
                     the onbeat that recorded it ({})",
                    read.version, read.onbeat
                )));
            }
            facts = Some(read);
            continue;
        }
        match serde_json::from_str::<Event>(text) {
            Ok(Event::Burst(burst)) if !is_possible(&burst) => {
                return Err(broken(format!(
                    "a burst with impossible times (not woke <= first_ran <= blocked): '{}'; remove \
                     the line",
                    excerpt(text)
                )));
            }
            Ok(event) => events.push(event),
            Err(_) if !line.ended => {
                warnings.push(line.cut_off());
                break;
            }
            Err(error) => {
                return Err(broken(format!(
                    "this is no event ({error}): '{}'; remove the line, or record again",
                    excerpt(text)
                )));
            }
        }
    }
    Ok(Recording::of(Format::Onbeat, facts, events, warnings))
}

impl Recording {
    pub(super) fn of(
        format: Format,
        facts: Option<Facts>,
        events: Vec<Event>,
        mut warnings: Vec<String>,
    ) -> Self {
        let losses = events.iter().map(|event| match event {
            Event::Lost { count, .. } => *count,
            _ => 0,
        });
        let lost = losses.fold(0, u64::saturating_add);
        if lost > 0 {
            warnings.push(format!("the recorder lost {lost} events in between"));
        }
        Self {
            format,
            facts,
            tasks: tasks(&events),
            began: events.iter().map(began).min().unwrap_or_default(),
            ended: events.iter().map(Event::at).max().unwrap_or_default(),
            events,
            lost,
            warnings,
            parents: HashMap::new(),
        }
    }
}

fn is_possible(burst: &Burst) -> bool {
    burst.woke <= burst.first_ran && burst.first_ran <= burst.blocked
}

/// When the event began: a burst at its wakeup.
fn began(event: &Event) -> onbeat_model::Instant {
    match event {
        Event::Burst(burst) => burst.woke,
        other => other.at(),
    }
}

/// The tasks in the order of their first mention, each with its last name. One whose announcement
/// was lost is called `?`.
fn tasks(events: &[Event]) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut places = HashMap::new();
    for event in events {
        let named = match event {
            Event::Tracked { task, .. } | Event::Renamed { task, .. } => Some(*task),
            _ => None,
        };
        let Some(id) = event.task() else { continue };
        let place = *places.entry(id).or_insert_with(|| {
            tasks.push(Task {
                id,
                pid: id.tid,
                comm: Name::from("?"),
            });
            tasks.len() - 1
        });
        if let (Some(known), Some(named)) = (tasks.get_mut(place), named) {
            *known = named;
        }
    }
    tasks
}
