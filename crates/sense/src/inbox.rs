//! The events that a tracer's own thread has heard, until the loop asks for them.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as HostInstant};

use onbeat_model::{Event, Span};

use onbeat_kernel::clock;

/// The events that are kept for the loop. 1,000 bursts a second for a minute.
const MOST_EVENTS: usize = 1 << 16;

/// Filled by tracers' threads, emptied by the loop.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    state: Mutex<InboxState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct InboxState {
    events: Vec<Event>,
    lost: u64,
    /// Tracers whose programs have not ended.
    running: usize,
    ends: HashMap<u32, i32>,
}

impl Inbox {
    fn state(&self) -> MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self) {
        self.state().running += 1;
    }

    /// A tracer's last program has ended.
    pub(crate) fn end(&self) {
        self.state().running -= 1;
        self.changed.notify_all();
    }

    pub(crate) fn push(&self, event: Event) {
        let mut state = self.state();
        if state.events.len() < MOST_EVENTS {
            state.events.push(event);
        } else {
            state.lost += 1;
        }
    }

    pub(crate) fn ended(&self, pid: u32, status: i32) {
        self.state().ends.insert(pid, status);
        self.changed.notify_all();
    }

    /// How the process `pid` ended, waiting for that if so wished; none if it has not, or never
    /// will be known.
    pub(crate) fn end_of(&self, pid: u32, wait: bool) -> Option<i32> {
        let mut state = self.state();
        loop {
            let status = state.ends.get(&pid).copied();
            if status.is_some() || !wait || state.running == 0 {
                return status;
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for `timeout`, but not beyond the end of the last tracer, and moves what came to
    /// `events`; true if nothing more will come.
    pub(crate) fn collect(&self, timeout: Span, events: &mut Vec<Event>) -> bool {
        let until = HostInstant::now() + Duration::from_nanos(timeout.as_ns());
        let mut state = self.state();
        loop {
            let left = until.saturating_duration_since(HostInstant::now());
            if state.running == 0 || left.is_zero() {
                break;
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        events.append(&mut state.events);
        let count = std::mem::take(&mut state.lost);
        if count > 0 {
            let at = clock::now();
            events.push(Event::Lost { at, count });
        }
        state.running == 0
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::{Burst, Instant, TaskId};

    use super::*;

    #[test]
    fn what_finds_no_room_is_counted_and_told_once() {
        let inbox = Inbox::default();
        inbox.begin();
        let event = Event::Burst(Burst::pulse(TaskId::recorded(1), Instant::ZERO));
        for _ in 0..MOST_EVENTS + 3 {
            inbox.push(event);
        }
        let mut events = Vec::new();
        assert!(!inbox.collect(Span::ZERO, &mut events));
        assert_eq!(events.len(), MOST_EVENTS + 1);
        assert!(matches!(events.last(), Some(Event::Lost { count: 3, .. })));
        events.clear();
        inbox.end();
        assert!(inbox.collect(Span::from_secs(3600), &mut events));
        assert!(events.is_empty());
    }

    #[test]
    fn the_end_of_a_process_is_waited_for_only_while_somebody_can_tell_it() {
        let inbox = Inbox::default();
        assert_eq!(inbox.end_of(1, true), None);
        inbox.begin();
        assert_eq!(inbox.end_of(1, false), None);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| inbox.end_of(1, true));
            inbox.ended(1, 7);
            assert_eq!(waiting.join().unwrap(), Some(7));
        });
    }
}
