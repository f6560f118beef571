//! The input from a report: `docs/formats.md` lists the fields. Fields that an earlier onbeat did
//! not write may be missing.

use onbeat_control::{Application, Stage};
use serde::Deserialize;

/// The content of a file of `--report`.
#[derive(Debug, Deserialize)]
pub(crate) struct PageRun {
    #[serde(default)]
    pub(crate) applications: Vec<Application>,
    pub(crate) threads: Vec<PageThread>,
    pub(super) elapsed_ns: u64,
    #[serde(default)]
    pub(super) lost_events: u64,
    pub(super) left_alone: Option<u64>,
    pub(super) loop_cpu: Option<f64>,
    #[serde(default)]
    pub(super) history: Vec<PageHistory>,
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
    pub(crate) period_ns: Option<u64>,
    #[serde(default)]
    pub(crate) confidence: f64,
    pub(super) jobs: u64,
    pub(super) missed: u64,
    pub(super) response_time: Option<PageQuantiles>,
    pub(super) bandwidth_used: Option<f64>,
    pub(super) bandwidth_reserved: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PageQuantiles {
    pub(super) p50_ns: u64,
    pub(super) p95_ns: u64,
    pub(super) p99_ns: u64,
    pub(super) max_ns: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PageHistory {
    tid: u32,
    started_ticks: u64,
    recent_jobs: PageJobColumns,
    pub(crate) wakeups_ns: Vec<u64>,
}

#[derive(Debug, Deserialize)]
struct PageJobColumns {
    release_ns: Vec<u64>,
    deadline_ns: Vec<u64>,
    ended_ns: Vec<u64>,
    executed_ns: Vec<u64>,
}

/// One job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageJob {
    pub(crate) release_ns: u64,
    pub(crate) response_ns: u64,
    pub(crate) executed_ns: u64,
    pub(crate) missed: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PageDecision {
    pub(crate) at_ns: u64,
    tid: u32,
    started_ticks: u64,
    pub(crate) what: String,
    pub(crate) why: String,
    pub(super) old: Option<PageReservation>,
    pub(crate) new: Option<PageReservation>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct PageReservation {
    pub(crate) runtime_ns: u64,
    pub(crate) period_ns: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct SpeedDecision {
    pub(super) at_ns: u64,
    pub(super) what: String,
    pub(super) why: String,
    pub(super) old_khz: Option<u64>,
    pub(super) new_khz: Option<u64>,
}

impl PageHistory {
    /// As many jobs as all lists hold.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = PageJob> {
        let jobs = &self.recent_jobs;
        let ends = jobs
            .deadline_ns
            .iter()
            .zip(&jobs.ended_ns)
            .zip(&jobs.executed_ns);
        jobs.release_ns.iter().zip(ends).map(
            |(&release_ns, ((&deadline, &ended), &executed_ns))| PageJob {
                release_ns,
                response_ns: ended.saturating_sub(release_ns),
                executed_ns,
                missed: ended > deadline,
            },
        )
    }
}

impl PageRun {
    /// The history of `thread`, if that was kept.
    pub(crate) fn history_of(&self, thread: &PageThread) -> Option<&PageHistory> {
        let key = (thread.tid, thread.started_ticks);
        self.history
            .iter()
            .find(|history| (history.tid, history.started_ticks) == key)
    }

    /// Something can be drawn of it.
    pub(super) fn has_history(&self, thread: &PageThread) -> bool {
        self.history_of(thread)
            .is_some_and(|history| !history.wakeups_ns.is_empty())
    }

    /// The decisions for `thread`.
    pub(crate) fn decisions_on(&self, thread: &PageThread) -> impl Iterator<Item = &PageDecision> {
        let key = (thread.tid, thread.started_ticks);
        self.decisions
            .iter()
            .filter(move |entry| (entry.tid, entry.started_ticks) == key)
    }

    /// The first time that is told.
    pub(crate) fn begins(&self) -> u64 {
        let wakeups = self
            .history
            .iter()
            .filter_map(|history| history.wakeups_ns.first());
        let decisions = self.decisions.iter().map(|entry| &entry.at_ns);
        wakeups.chain(decisions).copied().min().unwrap_or(0)
    }
}
