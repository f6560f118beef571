//! Cuts a recording into windows: which bursts of which thread fall into which.
//!
//! Windows start at the recording's first event, and a burst belongs to the window that it woke in.
//! Only windows that hold something are made, so that a damaged time cannot ask for billions.

use std::collections::{BTreeMap, HashMap};

use onbeat_model::{Burst, Event, Instant, Span, Task, TaskId};
use onbeat_sense::recording::Recording;

/// One thread's bursts in one window.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WindowBursts {
    pub(super) task: Task,
    pub(super) from: Instant,
    pub(super) to: Instant,
    pub(super) complete: bool,
    /// In the order of their wakeups.
    pub(super) bursts: Vec<Burst>,
}

/// All of them, window by window, the threads in the recording's order. Without a `window` the
/// whole recording is one.
pub(super) fn windows(recording: &Recording, window: Option<Span>) -> Vec<WindowBursts> {
    let places: HashMap<TaskId, usize> = recording
        .tasks
        .iter()
        .enumerate()
        .map(|(place, task)| (task.id, place))
        .collect();
    let mut cut: BTreeMap<(u64, usize), Vec<Burst>> = BTreeMap::new();
    for event in &recording.events {
        let Event::Burst(burst) = event else { continue };
        let Some(&place) = places.get(&burst.task) else {
            continue;
        };
        let since = burst.woke.since(recording.began).as_ns();
        let number = window.map_or(0, |window| since / window.as_ns().max(1));
        cut.entry((number, place)).or_default().push(*burst);
    }
    cut.into_iter()
        .filter_map(|((number, place), mut bursts)| {
            bursts.sort_by_key(|burst| burst.woke);
            let (from, end) = match window {
                Some(window) => (
                    recording.began + window * number,
                    recording.began + window * number.saturating_add(1),
                ),
                None => (recording.began, recording.ended),
            };
            Some(WindowBursts {
                task: *recording.tasks.get(place)?,
                from,
                to: end.min(recording.ended),
                complete: end <= recording.ended,
                bursts,
            })
        })
        .collect()
}
