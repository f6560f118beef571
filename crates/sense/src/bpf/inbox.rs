//! The events from the ring buffer, until the loop asks for them.
//!
//! The buffer has the records of all tasks in the order in which they were written. The events are
//! handed over one task after another: whatever is done with it then finds the task in the
//! processor's caches. That tasks come, go and are named keeps its place among all events: one may
//! come because another one went.

use std::collections::{BTreeMap, BTreeSet};

use onbeat_model::{Event, Origin, RunningProgram, TaskId};

use super::wire;

#[derive(Debug, Default)]
pub(super) struct EventBatch {
    events: Vec<Event>,
    /// The parts of each event: after how many of those that keep their place, of which task, and
    /// its own place.
    order: Vec<(u32, u64, u32)>,
    /// Some of it cannot wait.
    urgent: bool,
    begun: Vec<RunningProgram>,
    /// Where the tasks come from that were named since the last [`Self::forget_origins`].
    origins: BTreeMap<TaskId, Origin>,
}

impl EventBatch {
    pub(super) fn push(&mut self, event: Event) {
        self.urgent |= matches!(
            event,
            Event::Exhausted { .. } | Event::Yielded { .. } | Event::Waited { .. }
        );
        self.events.push(event);
    }

    pub(super) fn push_begun(&mut self, program: RunningProgram) {
        self.urgent = true;
        self.begun.push(program);
    }

    /// The processes that executed a program of a wanted name since this was last called.
    pub(super) fn take_begun(&mut self) -> Vec<RunningProgram> {
        std::mem::take(&mut self.begun)
    }

    pub(super) fn push_origin(&mut self, task: TaskId, origin: Origin) {
        self.origins.insert(task, origin);
    }

    /// Those of tasks whose events were handed over.
    pub(super) fn forget_origins(&mut self) {
        if self.events.is_empty() {
            self.origins.clear();
        }
    }

    pub(super) fn origin(&self, task: TaskId) -> Option<Origin> {
        self.origins.get(&task).copied()
    }

    /// Moves all events to `events`, those of one task in their order; true if some of them cannot
    /// wait.
    pub(super) fn hand_over(&mut self, events: &mut Vec<Event>) -> bool {
        self.order.clear();
        let mut part = 0;
        for (event, place) in self.events.iter().zip(0..) {
            if let Some(task) = who_did(event) {
                self.order.push((part, wire::pack(task), place));
            } else {
                self.order.push((part + 1, 0, place));
                part += 2;
            }
        }
        self.order.sort_unstable();
        let places = self.order.iter().map(|&(_, _, place)| place as usize);
        events.extend(places.filter_map(|place| self.events.get(place).copied()));
        self.events.clear();
        std::mem::take(&mut self.urgent)
    }

    pub(super) fn forget_all(&mut self, tasks: &[TaskId]) {
        let tasks: BTreeSet<TaskId> = tasks.iter().copied().collect();
        let is_theirs = |event: &Event| event.task().is_some_and(|task| tasks.contains(&task));
        self.events.retain(|event| !is_theirs(event));
    }
}

/// The task of the event; none if it is no deed.
const fn who_did(event: &Event) -> Option<TaskId> {
    match event {
        Event::Burst(burst) => Some(burst.task),
        Event::Marked(mark) => Some(mark.task),
        Event::Exhausted { task, .. }
        | Event::Yielded { task, .. }
        | Event::Waited { task, .. }
        | Event::Wakeup { task, .. }
        | Event::Suppressed { task, .. } => Some(*task),
        Event::Tracked { .. }
        | Event::Renamed { .. }
        | Event::Woke { .. }
        | Event::Exited { .. }
        | Event::Lost { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::Instant;

    use super::*;

    fn woke(tid: u32, at: u64) -> Event {
        Event::Wakeup {
            at: Instant::from_ns(at),
            task: TaskId::recorded(tid),
            waker: 0,
        }
    }

    fn exited(tid: u32, at: u64) -> Event {
        Event::Exited {
            at: Instant::from_ns(at),
            task: TaskId::recorded(tid),
        }
    }

    #[test]
    fn nothing_is_moved_across_the_end_of_a_task() {
        let mut inbox = EventBatch::default();
        let told = [woke(7, 1), woke(5, 2), exited(7, 3), exited(2, 4)];
        let later = [woke(6, 5), woke(1, 6)];
        for event in told.into_iter().chain(later) {
            inbox.push(event);
        }
        let mut events = Vec::new();
        inbox.hand_over(&mut events);
        let expected = [woke(5, 2), woke(7, 1), exited(7, 3), exited(2, 4)];
        assert_eq!(events[..4], expected);
        assert_eq!(events[4..], [woke(1, 6), woke(6, 5)]);
    }

    #[test]
    fn an_exhausted_budget_cannot_wait() {
        let mut inbox = EventBatch::default();
        inbox.push(Event::Exhausted {
            at: Instant::from_ns(1),
            task: TaskId::recorded(7),
        });
        inbox.push(exited(7, 2));
        let mut events = Vec::new();
        assert!(inbox.hand_over(&mut events));
        assert_eq!(events.len(), 2);
        assert!(!inbox.hand_over(&mut events));
    }
}
