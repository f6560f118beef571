//! The account of one thread: its jobs, and what it was promised against what it used.
//!
//! Bandwidths are weighted by time: a thread that held 20% for one second and 10% for three
//! held 12.5%.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;

use onbeat_model::{Bandwidth, Burst, Instant, Job, Quantiles, Span};
use serde::{Deserialize, Serialize};

use crate::{What, Why};

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

/// The distribution of some times, told within `1 / 2^PARTS_LOG2` of themselves.
#[derive(Clone, Debug, Default)]
pub struct TimeHistogram<const PARTS_LOG2: u32 = 6> {
    groups: Vec<u32>,
    first: usize,
    count: u64,
    max: Span,
}

impl<const PARTS_LOG2: u32> TimeHistogram<PARTS_LOG2> {
    const PARTS: u64 = 1 << PARTS_LOG2;

    pub fn record(&mut self, time: Span) {
        let group = Self::group_of(time.as_ns());
        if self.groups.is_empty() {
            self.first = group;
        }
        if group < self.first {
            let more = std::iter::repeat_n(0, self.first - group);
            self.groups.splice(..0, more);
            self.first = group;
        }
        let place = group - self.first;
        if place >= self.groups.len() {
            self.groups.resize(place + 1, 0);
        }
        if let Some(n) = self.groups.get_mut(place) {
            *n = n.saturating_add(1);
        }
        self.count += 1;
        self.max = self.max.max(time);
    }

    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    #[must_use]
    pub fn max(&self) -> Option<Span> {
        (self.count > 0).then_some(self.max)
    }

    /// The time that at least the fraction `p` stay within, at most one part too long; none if
    /// nothing was recorded.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<Span> {
        let rank = ((p.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (place, &n) in self.groups.iter().enumerate() {
            seen += u64::from(n);
            if seen >= rank {
                return Some(Span::from_ns(Self::longest_in(self.first + place)).min(self.max));
            }
        }
        None
    }

    #[must_use]
    pub fn quantiles(&self) -> Option<Quantiles> {
        Some(Quantiles {
            p50_ns: self.quantile(0.50)?,
            p95_ns: self.quantile(0.95)?,
            p99_ns: self.quantile(0.99)?,
            max_ns: self.max()?,
        })
    }

    fn group_of(ns: u64) -> usize {
        if ns < Self::PARTS {
            return ns as usize;
        }
        let octave = ns.ilog2() - PARTS_LOG2;
        let part = (ns >> octave) - Self::PARTS;
        (Self::PARTS + u64::from(octave) * Self::PARTS + part) as usize
    }

    fn longest_in(group: usize) -> u64 {
        let group = group as u64;
        if group < Self::PARTS {
            return group;
        }
        let octave = (group - Self::PARTS) / Self::PARTS;
        let part = (group - Self::PARTS) % Self::PARTS;
        (((Self::PARTS + part + 1) as u128) << octave)
            .saturating_sub(1)
            .try_into()
            .unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_sorted_list_within_a_sixty_fourth() {
        let mut times = <TimeHistogram>::default();
        let mut all = Vec::new();
        let mut x: u64 = 7;
        for _ in 0..5000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let span = Span::from_ns(x >> (20 + (x % 40)));
            all.push(span);
            times.record(span);
        }
        all.sort();
        for p in [0.0, 0.01, 0.5, 0.95, 0.99, 0.999, 1.0] {
            let rank = ((p * all.len() as f64).ceil() as usize).max(1);
            let exact = all[rank - 1];
            let told = times.quantile(p).unwrap();
            assert!(
                told >= exact && told <= exact + exact / 64,
                "{p}: {told} for {exact}"
            );
        }
        assert_eq!(times.max(), all.last().copied());
        assert_eq!(times.count(), 5000);
    }
}
