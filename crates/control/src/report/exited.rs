//! The reports of threads that ended: a program that starts a thread for each piece of work must
//! not fill the memory with them, so all but the last ones are only summed up.

use std::collections::VecDeque;

use onbeat_model::{Instant, Span};
use serde::Serialize;

use super::ThreadReport;
use super::application::Applications;
use super::decision::DecisionLog;

/// Reports of ended threads that are kept one by one; the others are summed up.
const ENDED: usize = 1000;

/// Threads whose figures are no longer kept one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    pub threads: u64,
    pub jobs: u64,
    pub missed: u64,
    pub changes: u64,
    pub exhaustions: u64,
    #[serde(rename = "executed_ns")]
    pub executed: Span,
}

impl Sums {
    pub(crate) fn add(&mut self, thread: &ThreadReport) {
        self.threads += 1;
        self.jobs += thread.counted.jobs;
        self.missed += thread.counted.missed;
        self.changes += thread.reservations.changes;
        self.exhaustions += thread.reservations.exhaustions;
        self.executed += thread.executed;
    }
}

#[derive(Debug, Default)]
pub(crate) struct EndedThreads {
    last: VecDeque<ThreadReport>,
    earlier: Sums,
}

#[derive(Debug, Default)]
pub(crate) struct RunRecords {
    pub(crate) now: Instant,
    pub(crate) log: DecisionLog,
    pub(crate) ended: EndedThreads,
    pub(crate) applications: Applications,
    /// How many threads ended without ever a rhythm.
    pub(crate) left_alone: u64,
    pub(crate) lost: u64,
    pub(crate) started: Option<Instant>,
}

impl EndedThreads {
    pub(crate) fn add(&mut self, report: ThreadReport) {
        self.last.push_back(report);
        if self.last.len() > ENDED
            && let Some(oldest) = self.last.pop_front()
        {
            self.earlier.add(&oldest);
        }
    }

    pub(crate) fn sums(&self) -> Sums {
        let mut sums = self.earlier;
        self.last.iter().for_each(|report| sums.add(report));
        sums
    }

    pub(crate) fn take(&mut self) -> (Vec<ThreadReport>, Sums) {
        let Self { last, earlier } = std::mem::take(self);
        (last.into(), earlier)
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::{Task, TaskId};

    use super::*;
    use crate::report::ReservationFigures;
    use crate::report::account::JobCounts;

    fn report(tid: u32) -> ThreadReport {
        ThreadReport {
            task: Task {
                id: TaskId::recorded(tid),
                ..Task::default()
            },
            counted: JobCounts {
                jobs: u64::from(tid),
                missed: 2,
                counted_from: None,
            },
            reservations: ReservationFigures {
                changes: 3,
                exhaustions: 4,
                ..ReservationFigures::default()
            },
            executed: Span::from_us(5),
            ..ThreadReport::default()
        }
    }

    #[test]
    fn the_last_thousand_are_kept_and_the_rest_is_in_the_sums() {
        let mut ended = EndedThreads::default();
        for tid in 1..=1007 {
            ended.add(report(tid));
        }
        let sums = |threads: u64| Sums {
            threads,
            jobs: (1..=threads).sum(),
            missed: 2 * threads,
            changes: 3 * threads,
            exhaustions: 4 * threads,
            executed: Span::from_us(5 * threads),
        };
        assert_eq!(ended.sums(), sums(1007));
        let (last, earlier) = ended.take();
        assert_eq!(last.len(), ENDED);
        assert_eq!(last.first().map(|r| r.task.id.tid), Some(8));
        assert_eq!(earlier, sums(7));
    }
}
