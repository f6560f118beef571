//! Deadline tasks: earliest deadline first, each in its server.

use std::collections::BTreeSet;

use onbeat_model::{Instant, Reservation, Span};

use super::bandwidth::Active;
use super::server::{CbsState, Overrun};
use crate::TaskIndex;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineClass {
    pub reservation: Reservation,
    pub overrun: Overrun,
    /// It may use bandwidth that others leave (GRUB, SCHED_FLAG_RECLAIM).
    pub reclaim: bool,
}

impl DeadlineClass {
    pub const fn hard(reservation: Reservation) -> Self {
        Self {
            reservation,
            overrun: Overrun::Hard,
            reclaim: false,
        }
    }
}

#[derive(Debug)]
pub(super) struct DeadlineEntity {
    pub(super) deadline: DeadlineClass,
    pub(super) server: CbsState,
    pub(super) active: Active,
    /// How much of each nanosecond of execution is charged, in parts per billion, since it was
    /// last picked.
    pub(super) charged_ppb: u64,
    /// Its place in line: kept as long as it does not block and its deadline stays.
    place: (Instant, u64),
}

impl DeadlineEntity {
    pub(super) fn new(deadline: DeadlineClass) -> Self {
        Self {
            deadline,
            server: CbsState::default(),
            active: Active::No,
            charged_ppb: WHOLE,
            place: (Instant::ZERO, 0),
        }
    }

    /// It blocks: when it comes back, it goes behind those of the same deadline.
    pub(super) const fn leaves_line(&mut self) {
        self.place.1 = 0;
    }

    pub(super) fn charged(&self, ran: Span) -> Span {
        if self.charged_ppb == WHOLE {
            return ran;
        }
        let ns = u128::from(ran.as_ns()) * u128::from(self.charged_ppb);
        Span::from_ns(u64::try_from(ns.div_ceil(u128::from(WHOLE))).unwrap_or(u64::MAX))
    }

    pub(super) fn lasts(&self) -> Span {
        let left = self.server.left();
        if self.charged_ppb == WHOLE {
            return left;
        }
        let ns = u128::from(left.as_ns()) * u128::from(WHOLE);
        let ns = ns.div_ceil(u128::from(self.charged_ppb.max(1)));
        Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

pub(super) const WHOLE: u64 = 1_000_000_000;

/// Ready tasks by deadline; those of the same deadline in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct DeadlineQueue {
    tasks: BTreeSet<(Instant, u64, TaskIndex)>,
    came: u64,
}

impl DeadlineQueue {
    pub(super) fn insert(&mut self, entity: &mut DeadlineEntity, task: TaskIndex) {
        self.line_up(entity);
        self.tasks.insert((entity.place.0, entity.place.1, task));
    }

    /// A task whose deadline has changed, or that has blocked, gets a new place.
    pub(super) fn line_up(&mut self, entity: &mut DeadlineEntity) {
        let deadline = entity.server.deadline();
        if entity.place.0 != deadline || entity.place.1 == 0 {
            self.came += 1;
            entity.place = (deadline, self.came);
        }
    }

    pub(super) fn remove(&mut self, entity: &DeadlineEntity, task: TaskIndex) {
        self.tasks.remove(&(entity.place.0, entity.place.1, task));
    }

    pub(super) fn first(&self) -> Option<Instant> {
        self.tasks.first().map(|&(deadline, ..)| deadline)
    }

    pub(super) fn take_first(&mut self) -> Option<TaskIndex> {
        self.tasks.pop_first().map(|(.., task)| task)
    }
}
