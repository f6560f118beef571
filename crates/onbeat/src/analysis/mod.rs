//! Analyses a recording window by window: what `analyze` prints, before it is printed.

mod windows;

use onbeat_infer::recorded;
use onbeat_model::{Instant, Rhythm, Span, Task};
use onbeat_sense::recording::Recording;
use serde::Serialize;

/// Fewer wakeups than this in a window say nothing about a rhythm: the thread is left out there.
pub(crate) const FEWEST_WAKEUPS: usize = 6;

/// The finding on one thread in one window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    /// The thread.
    pub(crate) task: Task,
    /// The window's begin.
    pub(crate) from: Instant,
    /// Its end: of a partial window, the recording's.
    pub(crate) to: Instant,
    /// The recording covers the whole window.
    pub(crate) complete: bool,
    /// How often the thread woke.
    pub(crate) wakeups: usize,
    /// Its rhythms, strongest first; none if it is not periodic.
    pub(crate) rhythms: Vec<Rhythm>,
    /// How many jobs of the strongest rhythm there were.
    pub(crate) jobs: usize,
}

/// One line of `analyze --json`; `docs/formats.md` describes it.
#[derive(Serialize)]
pub(crate) struct AnalysisLine {
    tid: u32,
    comm: String,
    from_ns: u64,
    to_ns: u64,
    complete: bool,
    period_ns: Option<u64>,
    confidence: f64,
    jitter_ns: u64,
    jobs: usize,
}

impl From<&Finding> for AnalysisLine {
    fn from(finding: &Finding) -> Self {
        let rhythm = finding.rhythms.first();
        Self {
            tid: finding.task.id.tid,
            comm: finding.task.comm.to_text(),
            from_ns: finding.from.as_ns(),
            to_ns: finding.to.as_ns(),
            complete: finding.complete,
            period_ns: rhythm.map(|rhythm| rhythm.period.as_ns()),
            confidence: rhythm.map_or(0.0, |rhythm| rhythm.confidence),
            jitter_ns: rhythm.map_or(0, |rhythm| rhythm.jitter.as_ns()),
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
    windows::windows(recording, window)
        .into_iter()
        .filter(|stretch| stretch.bursts.len() >= FEWEST_WAKEUPS)
        .map(|stretch| {
            let length = stretch.to.since(stretch.from);
            let rhythms = recorded::rhythms(&stretch.bursts, length, stretch.to);
            Finding {
                task: stretch.task,
                from: stretch.from,
                to: stretch.to,
                complete: stretch.complete,
                wakeups: stretch.bursts.len(),
                jobs: rhythms
                    .first()
                    .map_or(0, |rhythm| recorded::jobs(&stretch.bursts, *rhythm).len()),
                rhythms,
            }
        })
}
