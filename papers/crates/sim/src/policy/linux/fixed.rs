//! Tasks with fixed priorities: SCHED_FIFO and SCHED_RR.

use std::collections::BTreeSet;

use onbeat_model::Span;

use crate::TaskIndex;

/// The order of tasks of one priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Fifo,
    RoundRobin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// From 1 to 99; higher ones go first.
    pub priority: u8,
    pub order: Order,
}

#[derive(Debug)]
pub(super) struct FixedEntity {
    pub(super) fixed: Fixed,
    pub(super) turn: Span,
    /// It goes to the end of the line.
    pub(super) yields: bool,
    place: i64,
    round: Span,
}

impl FixedEntity {
    pub(super) const fn new(fixed: Fixed, round: Span) -> Self {
        Self {
            fixed,
            turn: round,
            yields: false,
            place: 0,
            round,
        }
    }

    /// The highest priority counts zero.
    pub(super) const fn rank(&self) -> u8 {
        u8::MAX - self.fixed.priority
    }

    pub(super) fn charge(&mut self, ran: Span) {
        self.turn = self.turn - ran;
    }
}

#[derive(Debug, Default)]
pub(super) struct FixedQueue {
    tasks: BTreeSet<(u8, i64, TaskIndex)>,
    front: i64,
    back: i64,
}

impl FixedQueue {
    pub(super) fn insert(&mut self, entity: &mut FixedEntity, task: TaskIndex) {
        self.back += 1;
        entity.place = self.back;
        self.tasks.insert((entity.rank(), entity.place, task));
    }

    /// At its head again, unless its turn is over or it yields.
    pub(super) fn put_back(&mut self, entity: &mut FixedEntity, task: TaskIndex) {
        if std::mem::take(&mut entity.yields) {
            self.insert(entity, task);
        } else if entity.fixed.order == Order::RoundRobin && entity.turn.is_zero() {
            entity.turn = entity.round;
            self.insert(entity, task);
        } else {
            self.front -= 1;
            entity.place = self.front;
            self.tasks.insert((entity.rank(), entity.place, task));
        }
    }

    pub(super) fn remove(&mut self, entity: &FixedEntity, task: TaskIndex) {
        self.tasks.remove(&(entity.rank(), entity.place, task));
    }

    pub(super) fn first(&self) -> Option<u8> {
        self.tasks.first().map(|&(rank, ..)| rank)
    }

    pub(super) fn take_first(&mut self) -> Option<TaskIndex> {
        self.tasks.pop_first().map(|(.., task)| task)
    }
}
