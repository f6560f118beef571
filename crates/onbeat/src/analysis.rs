//! Analyses a recording window by window: what `analyze` prints, before it is printed.
//!
//! Windows start at the recording's first event, and a burst belongs to the window that it woke in.
//! Only windows that hold something are made, so that a damaged time cannot ask for billions.

use std::collections::{BTreeMap, HashMap};

use onbeat_infer::recorded;
use onbeat_model::{Burst, Event, Instant, Rhythm, Span, Task, TaskId};
use onbeat_sense::recording::Recording;
use serde::Serialize;

/// Fewer wakeups than this in a window say nothing about a rhythm: the thread is left out there.
pub(crate) const FEWEST_WAKEUPS: usize = 6;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) task: Task,
    pub(crate) from: Instant,
    /// Of a partial window, the recording's end.
    pub(crate) to: Instant,
    pub(crate) complete: bool,
    pub(crate) wakeups: usize,
    pub(crate) rhythms: Vec<Rhythm>,
    pub(crate) jobs: usize,
}

/// One line of `analyze --json`; `docs/formats.md` describes it.
#[derive(Serialize)]
pub(crate) struct AnalysisLine {
    tid: u32,
    comm: String,
    from_ns: Instant,
    to_ns: Instant,
    complete: bool,
    period_ns: Option<Span>,
    confidence: f64,
    jitter_ns: Span,
    jobs: usize,
}

impl From<&Finding> for AnalysisLine {
    fn from(finding: &Finding) -> Self {
        let rhythm = finding.rhythms.first();
        Self {
            tid: finding.task.id.tid,
            comm: finding.task.comm.to_text(),
            from_ns: finding.from,
            to_ns: finding.to,
            complete: finding.complete,
            period_ns: rhythm.map(|rhythm| rhythm.period),
            confidence: rhythm.map_or(0.0, |rhythm| rhythm.confidence),
            jitter_ns: rhythm.map_or(Span::ZERO, |rhythm| rhythm.jitter),
            jobs: finding.jobs,
        }
    }
}

/// The findings in each window of length `window` (or in the whole recording), window by window,
/// the threads in the order in which the recording mentions them.
pub(crate) fn findings(
    recording: &Recording,
    window: Option<Span>,
) -> impl Iterator<Item = Finding> {
    let tasks = recording.tasks.iter().enumerate();
    let places: HashMap<TaskId, usize> = tasks.map(|(place, task)| (task.id, place)).collect();
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
        .filter(|(_, bursts)| bursts.len() >= FEWEST_WAKEUPS)
        .filter_map(move |((number, place), mut bursts)| {
            bursts.sort_by_key(|burst| burst.woke);
            let (from, end) = match window {
                Some(window) => (
                    recording.began + window * number,
                    recording.began + window * number.saturating_add(1),
                ),
                None => (recording.began, recording.ended),
            };
            let to = end.min(recording.ended);
            let rhythms = recorded::rhythms(&bursts, to.since(from), to);
            let jobs = rhythms.first().map(|first| recorded::jobs(&bursts, *first));
            Some(Finding {
                task: *recording.tasks.get(place)?,
                from,
                to,
                complete: end <= recording.ended,
                wakeups: bursts.len(),
                jobs: jobs.map_or(0, |jobs| jobs.len()),
                rhythms,
            })
        })
}
