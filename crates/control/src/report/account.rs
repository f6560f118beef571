//! The account of one thread: its jobs, and what it was promised against what it used.
//!
//! Bandwidths are weighted by time: a thread that held 20% for one second and 10% for three
//! held 12.5%.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;

use onbeat_model::{Bandwidth, Burst, Instant, Job, Span};
use serde::{Deserialize, Serialize};

use crate::{TimeHistogram, What, Why};

#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadAccount {
    pub(crate) response_times: TimeHistogram,
    pub(crate) recent: RecentJobs,
    pub(crate) counted: JobCounts,
    pub(crate) listener: Option<Sender<Job>>,
    pub(crate) bursts: u64,
    pub(crate) executed: Span,
    pub(crate) exhaustions: u64,
    pub(crate) marks: MarkFigures,
    pub(crate) holding: Holding,
    pub(crate) last_decision: Option<(What, Why)>,
    /// Why it was last refused something.
    pub(crate) last_refusal: Option<Why>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct MarkFigures {
    pub marks: u64,
    /// Marks dropped because there were too many.
    pub marks_suppressed: u64,
    pub missed_told: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Holding {
    pub(crate) changes: u64,
    pub(crate) first: Option<Instant>,
    present: Option<(Instant, Bandwidth)>,
    since: Option<Instant>,
    held: Span,
    promised: Span,
    executed: Span,
}

impl ThreadAccount {
    pub(crate) fn burst(&mut self, burst: &Burst) {
        self.bursts += 1;
        self.executed += burst.executed;
        if self.holding.since.is_some_and(|since| burst.woke >= since) {
            self.holding.executed += burst.executed;
        }
    }

    pub(crate) fn job(&mut self, job: &Job) {
        self.counted.add(job);
        self.response_times.record(job.response_time());
        self.recent.push(job);
        // A listener that is gone hears nothing.
        let _ = self.listener.as_ref().map(|listener| listener.send(*job));
    }
}

impl Holding {
    /// From `at` on the thread holds `bandwidth`, or nothing.
    pub(crate) fn holds(&mut self, bandwidth: Option<Bandwidth>, at: Instant) {
        if let Some((since, before)) = self.present {
            let span = at.since(since);
            self.held += span;
            self.promised += before.runtime_in(span);
        }
        self.since = bandwidth.and(self.since.or(Some(at)));
        self.present = bandwidth.map(|bandwidth| (at, bandwidth));
        if self.present.is_some() && self.first.is_none() {
            self.first = Some(at);
        }
    }

    /// For how long up to `now` it held a reservation.
    pub(crate) fn held(&self, now: Instant) -> Span {
        let present = self.present;
        self.held + present.map_or(Span::ZERO, |(since, _)| now.since(since))
    }

    /// The mean bandwidth it was promised while it held a reservation.
    pub(crate) fn reserved(&self, now: Instant) -> Bandwidth {
        let running =
            |(since, bandwidth): (Instant, Bandwidth)| bandwidth.runtime_in(now.since(since));
        let running = self.present.map_or(Span::ZERO, running);
        Bandwidth::of(self.promised + running, self.held(now))
    }

    /// The mean bandwidth it used while it held a reservation.
    pub(crate) fn used(&self, now: Instant) -> Bandwidth {
        Bandwidth::of(self.executed, self.held(now))
    }
}

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
