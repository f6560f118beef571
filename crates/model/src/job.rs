//! One unit of a periodic thread's work, as a frame or a buffer, and how much CPU time the last
//! ones took.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::{Burst, Instant, Span, TaskId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    #[serde(flatten)]
    pub task: TaskId,
    /// When it was due to begin: its beat.
    #[serde(rename = "release_ns")]
    pub release: Instant,
    #[serde(rename = "woke_ns")]
    pub woke: Instant,
    #[serde(rename = "started_ns")]
    pub started: Instant,
    #[serde(rename = "ended_ns")]
    pub ended: Instant,
    #[serde(rename = "executed_ns")]
    pub executed: Span,
    /// How long its bursts were ready and had no CPU; zero if that is not known.
    #[serde(rename = "waited_ns")]
    pub waited: Span,
    #[serde(rename = "deadline_ns")]
    pub deadline: Instant,
    pub bursts: u32,
    pub exhausted: bool,
}

impl Job {
    #[must_use]
    pub fn of(burst: &Burst, release: Instant, deadline: Instant) -> Self {
        Self {
            task: burst.task,
            release,
            woke: burst.woke,
            started: burst.first_ran,
            ended: burst.blocked,
            executed: burst.executed,
            waited: burst.waited(),
            deadline,
            bursts: 1,
            exhausted: burst.exhausted,
        }
    }

    /// From the release (or the wakeup, if that came first) to the end.
    #[must_use]
    pub fn response_time(&self) -> Span {
        self.ended.since(self.release.min(self.woke))
    }

    #[must_use]
    pub fn missed(&self) -> bool {
        self.ended > self.deadline
    }
}

/// The distribution of execution time per job over a window of the last jobs.
///
/// Keeps the window sorted as it slides, so that a quantile is one look-up and a job costs one
/// binary search and one short move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    capacity: usize,
    recent: VecDeque<Span>,
    sorted: Vec<Span>,
}

impl Demand {
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self {
            capacity,
            recent: VecDeque::new(),
            sorted: Vec::new(),
        }
    }

    pub fn record(&mut self, executed: Span) {
        let enters = self.sorted.partition_point(|&s| s < executed);
        if self.recent.len() < self.capacity {
            self.sorted.insert(enters, executed);
        } else if let Some(oldest) = self.recent.pop_front() {
            self.replace(oldest, executed, enters);
        }
        self.recent.push_back(executed);
    }

    /// Takes in one more job of a thread, which runs on one CPU at a time: one that took more CPU
    /// time than its period holds the work of several (a starved thread that catches up without
    /// ever blocking shows one long burst). Only one period's worth of it is recorded: no
    /// reservation can give more, and a larger number would say nothing about one job.
    pub fn hear(&mut self, job: &Job) {
        self.record(job.executed.min(job.deadline.since(job.release)));
    }

    /// Moves only what lies between the places of the two: next to nothing where jobs are alike.
    fn replace(&mut self, oldest: Span, executed: Span, enters: usize) {
        let leaves = self.sorted.partition_point(|&s| s < oldest);
        if enters > leaves {
            self.sorted[leaves..enters].rotate_left(1);
            self.sorted[enters - 1] = executed;
        } else {
            self.sorted[enters..=leaves].rotate_right(1);
            self.sorted[enters] = executed;
        }
    }

    /// Every job would have taken `factor` times as long: the CPUs have another speed now.
    pub fn scale(&mut self, factor: f64) {
        for span in self.recent.iter_mut().chain(&mut self.sorted) {
            *span = span.scale(factor);
        }
    }

    pub fn clear(&mut self) {
        self.recent.clear();
        self.sorted.clear();
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.recent.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recent.is_empty()
    }

    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn recent(&self) -> impl DoubleEndedIterator<Item = Span> + ExactSizeIterator {
        self.recent.iter().copied()
    }

    #[must_use]
    pub fn sorted(&self) -> &[Span] {
        &self.sorted
    }

    /// The smallest execution time that at least the fraction `p` of the window's jobs stay within
    /// (nearest rank); none if the window is empty.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<Span> {
        let rank = (p.clamp(0.0, 1.0) * self.sorted.len() as f64).ceil() as usize;
        self.sorted.get(rank.saturating_sub(1)).copied()
    }

    #[must_use]
    pub fn max(&self) -> Option<Span> {
        self.sorted.last().copied()
    }

    #[must_use]
    pub fn mean(&self) -> Option<Span> {
        (!self.is_empty()).then(|| self.recent().sum::<Span>() / self.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Burst, Instant, TaskId};

    #[test]
    fn a_job_that_holds_the_work_of_several_counts_one_period() {
        let mut demand = Demand::new(3);
        for (executed_ms, counted_ms) in [(10, 10), (400, 40)] {
            let executed = Span::from_ms(executed_ms);
            let burst = Burst::alone(TaskId::recorded(1), Instant::ZERO, executed);
            let deadline = Instant::ZERO + Span::from_ms(40);
            demand.hear(&Job::of(&burst, Instant::ZERO, deadline));
            assert_eq!(demand.max(), Some(Span::from_ms(counted_ms)));
        }
    }

    #[test]
    fn the_window_slides_and_stays_sorted_like_a_window_sorted_anew() {
        let mut demand = Demand::new(16);
        let mut all = Vec::new();
        let mut x: u64 = 1;
        for _ in 0..200 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let span = Span::from_ns(x >> 60);
            all.push(span);
            demand.record(span);
            let mut twin = all[all.len().saturating_sub(16)..].to_vec();
            twin.sort();
            assert_eq!(demand.sorted(), twin);
        }
    }
}
