//! The input from a report: `docs/report.md` lists the fields. Fields that an earlier onbeat did
//! not write may be missing.

use onbeat_control::{Application, ThreadReport, What};
use onbeat_model::{Instant, Reservation, Span, TaskId};
use serde::Deserialize;

use crate::history::ThreadHistory;

#[derive(Debug, Deserialize)]
pub(crate) struct PageRun {
    #[serde(default)]
    pub(crate) applications: Vec<Application>,
    pub(crate) threads: Vec<ThreadReport>,
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

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PageDecision {
    pub(crate) at_ns: Instant,
    #[serde(flatten)]
    task: TaskId,
    pub(crate) what: What,
    pub(crate) why: String,
    pub(super) old: Option<Reservation>,
    pub(crate) new: Option<Reservation>,
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
    pub(crate) fn history_of(&self, thread: &ThreadReport) -> Option<&ThreadHistory> {
        let mut histories = self.history.iter();
        histories.find(|history| history.id == thread.task.id)
    }

    pub(super) fn has_history(&self, thread: &ThreadReport) -> bool {
        self.history_of(thread)
            .is_some_and(|history| history.first().is_some())
    }

    pub(crate) fn decisions_on(
        &self,
        thread: &ThreadReport,
    ) -> impl Iterator<Item = &PageDecision> {
        let id = thread.task.id;
        let decisions = self.decisions.iter();
        decisions.filter(move |entry| entry.task == id)
    }

    pub(crate) fn begins(&self) -> Instant {
        let wakeups = self.history.iter().filter_map(ThreadHistory::first);
        let decisions = self.decisions.iter().map(|entry| entry.at_ns);
        wakeups.chain(decisions).min().unwrap_or_default()
    }
}
