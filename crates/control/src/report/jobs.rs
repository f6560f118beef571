//! The last jobs of a thread, for observers.

use std::collections::VecDeque;

use onbeat_model::{Instant, Job, Span};
use serde::{Deserialize, Serialize};

/// A second of a thread of 64 Hz, and two kilobytes.
const JOBS: usize = 64;

/// How many jobs a thread did, from when its period was known. What is counted in every view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct JobCounts {
    pub jobs: u64,
    /// Those that ended after the next one's release.
    pub missed: u64,
    #[serde(rename = "counted_from_ns")]
    pub counted_from: Option<Instant>,
}

impl JobCounts {
    pub(crate) fn add(&mut self, job: &Job) {
        self.jobs += 1;
        self.missed += u64::from(job.missed());
        self.counted_from.get_or_insert(job.release.min(job.woke));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct DoneJob {
    pub ended: Instant,
    pub response: Span,
    pub executed: Span,
    /// It ended after the next one's release.
    pub missed: bool,
}

impl From<&Job> for DoneJob {
    fn from(job: &Job) -> Self {
        Self {
            ended: job.ended,
            response: job.response_time(),
            executed: job.executed,
            missed: job.missed(),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RecentJobs(VecDeque<DoneJob>);

impl RecentJobs {
    pub(crate) fn push(&mut self, job: &Job) {
        if self.0.len() >= JOBS {
            self.0.pop_front();
        }
        self.0.push_back(DoneJob::from(job));
    }

    pub(crate) fn since(&self, at: Instant) -> impl Iterator<Item = DoneJob> {
        self.0.iter().copied().filter(move |done| done.ended > at)
    }
}
