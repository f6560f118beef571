//! The input from a report: `docs/formats.md` lists the fields. Fields that an earlier onbeat did
//! not write may be missing.

use onbeat_control::{Application, ResponseTimes, Stage};
use onbeat_model::{Instant, Span};
use serde::Deserialize;

use crate::history::ThreadHistory;

/// The content of a file of `--report`.
#[derive(Debug, Deserialize)]
pub(crate) struct PageRun {
    #[serde(default)]
    pub(crate) applications: Vec<Application>,
    pub(crate) threads: Vec<PageThread>,
    pub(super) elapsed_ns: Span,
    #[serde(default)]
    pub(super) lost_events: u64,
    pub(super) left_alone: Option<u64>,
    pub(super) loop_cpu: Option<f64>,
    #[serde(default)]
    pub(super) history: Vec<ThreadHistory>,
    #[serde(default)]
    pub(super) decisions: Vec<PageDecision>,
    #[serde(default)]
    pub(super) speed_decisions: Vec<SpeedDecision>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PageThread {
    pub(crate) tid: u32,
    pub(crate) started_ticks: u64,
    #[serde(default)]
    pub(crate) pid: u32,
    #[serde(default)]
    pub(crate) application: u32,
    pub(crate) comm: String,
    pub(super) state: String,
    pub(crate) stage: Option<Stage>,
    pub(crate) period_ns: Option<Span>,
    #[serde(default)]
    pub(crate) confidence: f64,
    pub(super) jobs: u64,
    pub(crate) counted_from_ns: Option<Instant>,
    pub(super) missed: u64,
    pub(super) response_time: Option<ResponseTimes>,
    pub(super) bandwidth_used: Option<f64>,
    pub(super) bandwidth_reserved: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PageDecision {
    pub(crate) at_ns: Instant,
    tid: u32,
    started_ticks: u64,
    pub(crate) what: String,
    pub(crate) why: String,
    pub(super) old: Option<PageReservation>,
    pub(crate) new: Option<PageReservation>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct PageReservation {
    pub(crate) runtime_ns: Span,
    pub(crate) period_ns: Span,
}

#[derive(Debug, Deserialize)]
pub(super) struct SpeedDecision {
    pub(super) at_ns: Instant,
    pub(super) what: String,
    pub(super) why: String,
    pub(super) old_khz: Option<u64>,
    pub(super) new_khz: Option<u64>,
}

impl PageRun {
    /// The history of `thread`, if that was kept.
    pub(crate) fn history_of(&self, thread: &PageThread) -> Option<&ThreadHistory> {
        let key = (thread.tid, thread.started_ticks);
        self.history
            .iter()
            .find(|history| (history.id.tid, history.id.started_ticks) == key)
    }

    /// Something can be drawn of it.
    pub(super) fn has_history(&self, thread: &PageThread) -> bool {
        self.history_of(thread)
            .is_some_and(|history| history.first().is_some())
    }

    /// The decisions for `thread`.
    pub(crate) fn decisions_on(&self, thread: &PageThread) -> impl Iterator<Item = &PageDecision> {
        let key = (thread.tid, thread.started_ticks);
        self.decisions
            .iter()
            .filter(move |entry| (entry.tid, entry.started_ticks) == key)
    }

    /// The first time that is told.
    pub(crate) fn begins(&self) -> Instant {
        let wakeups = self.history.iter().filter_map(ThreadHistory::first);
        let decisions = self.decisions.iter().map(|entry| entry.at_ns);
        wakeups.chain(decisions).min().unwrap_or_default()
    }
}
