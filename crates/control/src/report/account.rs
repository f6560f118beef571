//! The account of one thread: its jobs, and what it was promised against what it used.
//!
//! Bandwidths are weighted by time: a thread that held 20% for one second and 10% for three
//! held 12.5%.

use onbeat_model::{Bandwidth, Burst, Instant, Job, Span};

use crate::Times;
use crate::report::jobs::Recent;

/// What is kept about a thread for the report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) response_times: Times,
    pub(crate) recent: Recent,
    pub(crate) jobs: u64,
    pub(crate) missed: u64,
    pub(crate) bursts: u64,
    pub(crate) changes: u64,
    pub(crate) exhaustions: u64,
    pub(crate) marks: u64,
    pub(crate) marks_suppressed: u64,
    pub(crate) missed_told: u64,
    pub(crate) executed: Span,
    pub(crate) first_reserved: Option<Instant>,
    holding: Option<(Instant, Bandwidth)>,
    held_since: Option<Instant>,
    held: Span,
    promised: Span,
    executed_held: Span,
}

impl Figures {
    pub(crate) fn burst(&mut self, burst: &Burst) {
        self.bursts += 1;
        self.executed += burst.executed;
        if self.held_since.is_some_and(|since| burst.woke >= since) {
            self.executed_held += burst.executed;
        }
    }

    pub(crate) fn job(&mut self, job: &Job) {
        self.jobs += 1;
        self.missed += u64::from(job.missed());
        self.response_times.record(job.response_time());
        self.recent.push(job);
    }

    /// From `at` on the thread holds `bandwidth`, or nothing.
    pub(crate) fn holds(&mut self, bandwidth: Option<Bandwidth>, at: Instant) {
        if let Some((since, before)) = self.holding {
            let span = at.since(since);
            self.held += span;
            self.promised += before.runtime_in(span);
        }
        self.held_since = bandwidth.and(self.held_since.or(Some(at)));
        self.holding = bandwidth.map(|bandwidth| (at, bandwidth));
        if self.holding.is_some() && self.first_reserved.is_none() {
            self.first_reserved = Some(at);
        }
    }

    /// For how long up to `now` it held a reservation.
    pub(crate) fn held(&self, now: Instant) -> Span {
        self.held
            + self
                .holding
                .map_or(Span::ZERO, |(since, _)| now.since(since))
    }

    /// The mean bandwidth it was promised while it held a reservation.
    pub(crate) fn reserved(&self, now: Instant) -> Bandwidth {
        let running = self
            .holding
            .map_or(Span::ZERO, |(since, b)| b.runtime_in(now.since(since)));
        Bandwidth::of(self.promised + running, self.held(now))
    }

    /// The mean bandwidth it used while it held a reservation.
    pub(crate) fn used_while_held(&self, now: Instant) -> Bandwidth {
        Bandwidth::of(self.executed_held, self.held(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promised_bandwidth_is_weighted_by_time() {
        let s = |s| Instant::ZERO + Span::from_secs(s);
        let share = Bandwidth::from_cpus;
        let mut figures = Figures::default();
        figures.holds(Some(share(0.2)), s(1));
        figures.holds(Some(share(0.1)), s(2));
        assert_eq!(figures.reserved(s(5)), share(0.125));
        figures.holds(None, s(5));
        assert_eq!(figures.reserved(s(50)), share(0.125));
        assert_eq!(figures.held(s(50)), Span::from_secs(4));
        assert_eq!(figures.first_reserved, Some(s(1)));
    }
}
