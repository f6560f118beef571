//! How things stand at a moment, from whatever source.

use std::time::Duration;

use onbeat_control::{Application, Controller, DoneJob, State, View};
use onbeat_model::{Actuator, Bandwidth, Instant, Reservation, Span, Task};

use crate::WantedThreads;

/// The time between two snapshots, and so between two drawings of the screen: a change is there
/// well within a second.
pub const SNAPSHOT_EVERY: Duration = Duration::from_millis(250);

#[derive(Clone, Debug, PartialEq)]
pub struct ThreadSnapshot {
    pub task: Task,
    /// The first process of the application that it works for.
    pub application: u32,
    /// The user who is charged, if known.
    pub user: Option<u32>,
    pub state: State,
    pub period: Option<Span>,
    pub confidence: f64,
    pub held: Option<Reservation>,
    pub jobs: u64,
    /// The release of the first of them.
    pub counted_from: Option<Instant>,
    /// How many of those ended after the next one's release.
    pub missed: u64,
    /// How often its budget ran out.
    pub exhaustions: u64,
    pub bursts: u64,
    pub executed: Span,
    /// Why that was done to it which was done last; empty if nothing was.
    pub why: String,
    /// Why it has no reservation, or a smaller one than it needs; empty otherwise.
    pub refusal: String,
    /// The path of another thread that it works on; empty if there is none.
    pub path: String,
    /// Jobs that ended since the last snapshot, as far as they were wanted.
    pub news: Vec<DoneJob>,
}

impl ThreadSnapshot {
    fn of(view: View, news: Vec<DoneJob>) -> Self {
        Self {
            state: view.state,
            task: view.task,
            application: view.served.application,
            user: None,
            period: view.rhythm.map(|rhythm| rhythm.period),
            confidence: view.rhythm.map_or(0.0, |rhythm| rhythm.confidence),
            held: view.held,
            jobs: view.counted.jobs,
            counted_from: view.counted.counted_from,
            missed: view.counted.missed,
            exhaustions: view.exhaustions,
            bursts: view.bursts,
            executed: view.executed,
            path: view
                .stage
                .map_or_else(String::new, |stage| stage.to_string()),
            refusal: view.served.refusal.unwrap_or_default(),
            why: view
                .last
                .map_or_else(String::new, |(_, why)| why.to_string()),
            news,
        }
    }

    #[must_use]
    pub fn reason(&self) -> String {
        let why = match self.bursts {
            _ if !self.refusal.is_empty() => self.refusal.clone(),
            _ if !self.why.is_empty() => self.why.clone(),
            0 => "it has not run yet".to_owned(),
            1 => "no period after one burst".to_owned(),
            n => format!("no period after {n} bursts"),
        };
        if self.path.is_empty() || why.contains(&self.path) {
            why
        } else {
            format!("{}: {why}", self.path)
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    pub at: Instant,
    pub reserved: Bandwidth,
    /// Their limit; nothing if that is not known.
    pub total: Bandwidth,
    /// The applications that the threads work for, as far as their sums are known.
    pub applications: Vec<Application>,
    pub threads: Vec<ThreadSnapshot>,
}

impl Snapshot {
    /// How things stand in a loop, with the jobs that ended after `since`.
    #[must_use]
    pub fn of<A: Actuator>(
        controller: &mut Controller<A>,
        wanted: &WantedThreads,
        since: Instant,
        at: Instant,
    ) -> Self {
        let mut snapshot = Self {
            at,
            reserved: controller.held().map(|(_, held)| held.bandwidth()).sum(),
            total: controller.total(),
            applications: controller.applications(at),
            ..Self::default()
        };
        for view in controller.view() {
            let id = view.task.id;
            let news = if wanted.jobs_of.contains(&id.tid) {
                controller.recent_jobs(id, since).collect()
            } else {
                Vec::new()
            };
            snapshot.threads.push(ThreadSnapshot::of(view, news));
        }
        snapshot
    }
}
