//! Holds the bursts of settled threads back if there are 100 threads or more, and takes in many of
//! them together.
//!
//! Fetching a thread's record from memory costs as much as many of its jobs. The bursts of a
//! settled thread can wait while its budget suffices. All threads are visited in turns, a thousand
//! a second, or each once a second if there are more. Nothing is lost: a question or a decision
//! about a thread takes its held bursts in first.
//!
//! An exhausted budget is answered at once. If not all threads fit, it is answered only if it is
//! news: a thread with less than it wants exhausts its budget again and again.

mod pace;

use std::ops::Range;

use onbeat_infer::period::Compact;
use onbeat_model::{Burst, Instant};

use crate::slots::Slot;
use crate::tuning::batching::{EACH, LONGEST_BURST, LONGEST_ROUND, MOST, NEWS_AFTER};
use crate::tuning::requests::MANY;
pub(crate) use pace::{TurnPace, crowd};

/// Whether the bursts of settled threads are held back if there are this many `threads`.
pub(crate) const fn holds_back(threads: usize) -> bool {
    threads >= MANY
}

/// The pace of the loop, the events that it holds back, and the thread to visit next.
#[derive(Debug, Default)]
pub(crate) struct Batcher {
    pub(crate) pace: TurnPace,
    threads: Vec<BatchedThread>,
    next: Slot,
    /// The time of the last visit.
    since: Instant,
}

/// A thread's state without its record.
#[derive(Debug, Default)]
struct BatchedThread {
    put_by: Vec<HeldEvent>,
    is_settled: bool,
    /// It wants more than it has.
    is_short: bool,
    /// The number of visits for which an exhausted budget is no news.
    ran_out: u8,
    /// A timer is due for it.
    look: bool,
}

/// A held event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum HeldEvent {
    Burst(Compact),
    RanOut(Instant),
}

impl Batcher {
    /// The thread is settled: its next events are held back.
    pub(crate) fn settled(&mut self, slot: Slot, is_short: bool) {
        if slot >= self.threads.len() {
            self.threads.resize_with(slot + 1, BatchedThread::default);
        }
        if let Some(thread) = self.threads.get_mut(slot) {
            thread.is_settled = true;
            thread.is_short = is_short;
        }
    }

    /// Its events are no longer held back.
    pub(crate) fn hurry(&mut self, slot: Slot) {
        if let Some(thread) = self.threads.get_mut(slot) {
            thread.is_settled = false;
        }
    }

    /// Forgets a thread.
    pub(crate) fn forget(&mut self, slot: Slot) {
        if let Some(thread) = self.threads.get_mut(slot) {
            *thread = BatchedThread::default();
        }
    }

    fn with_room(&mut self, slot: Slot) -> Option<&mut BatchedThread> {
        let thread = self.threads.get_mut(slot)?;
        (thread.is_settled && thread.put_by.len() < MOST).then_some(thread)
    }

    /// Holds the burst back; false if it is to be taken in now.
    pub(crate) fn put(&mut self, slot: Slot, burst: &Burst) -> bool {
        let is_long = burst.response().max(burst.executed) > LONGEST_BURST;
        let Some(thread) = self.with_room(slot).filter(|_| !is_long) else {
            return false;
        };
        thread.put_by.push(HeldEvent::Burst(Compact::of(burst)));
        true
    }

    /// Holds an exhausted budget back; false if it is news.
    pub(crate) fn put_run_out(&mut self, slot: Slot, at: Instant) -> bool {
        let Some(thread) = self.with_room(slot) else {
            return false;
        };
        let is_news = !thread.is_short && thread.ran_out == 0;
        if !is_news {
            thread.put_by.push(HeldEvent::RanOut(at));
        }
        !is_news
    }

    /// For a while another exhausted budget of the thread is no news.
    pub(crate) fn ran_out(&mut self, slot: Slot) {
        if let Some(thread) = self.threads.get_mut(slot) {
            thread.ran_out = NEWS_AFTER;
        }
    }

    /// Notes a timer for the thread's next visit; false if no event of it is held.
    pub(crate) fn look_later(&mut self, slot: Slot) -> bool {
        let thread = self.threads.get_mut(slot);
        let Some(thread) = thread.filter(|thread| !thread.put_by.is_empty()) else {
            return false;
        };
        thread.look = true;
        true
    }

    /// Its held events, and whether a timer is due.
    pub(crate) fn take(&mut self, slot: Slot) -> Option<(Vec<HeldEvent>, bool)> {
        let thread = self.threads.get_mut(slot)?;
        let put_by = std::mem::take(&mut thread.put_by);
        (!put_by.is_empty()).then(|| (put_by, std::mem::take(&mut thread.look)))
    }

    /// Takes back the memory that [`take`](Self::take) gave, to use it again.
    pub(crate) fn reuse(&mut self, slot: Slot, mut memory: Vec<HeldEvent>) {
        memory.clear();
        if let Some(thread) = self.threads.get_mut(slot) {
            thread.put_by = memory;
        }
    }

    /// All slots of which events may be held.
    pub(crate) fn slots(&self) -> Range<Slot> {
        0..self.threads.len()
    }

    /// No more events are held back, once all have been taken.
    pub(crate) fn forget_all(&mut self) {
        self.threads = Vec::new();
        (self.next, self.since) = (0, Instant::ZERO);
    }

    /// The threads to visit by `now`.
    pub(crate) fn visits(&mut self, now: Instant) -> impl Iterator<Item = Slot> + use<> {
        let (first, due) = self.turns(now);
        let threads = self.threads.len().max(1);
        let visits = (first..first + due).map(move |turn| turn % threads);
        for slot in visits.clone() {
            if let Some(thread) = self.threads.get_mut(slot) {
                thread.ran_out = thread.ran_out.saturating_sub(1);
            }
        }
        visits
    }

    /// The threads to visit by `now`: the first one, and their number.
    fn turns(&mut self, now: Instant) -> (Slot, usize) {
        let threads = self.threads.len() as u64;
        let round = (EACH * threads).min(LONGEST_ROUND);
        let passed = now.since(self.since).min(round);
        let due = threads * passed.as_ns() / round.as_ns().max(1);
        if passed == round {
            self.since = now;
        } else {
            self.since = self.since + round * due / threads.max(1);
        }
        let first = self.next;
        self.next = (first + due as usize) % self.threads.len().max(1);
        (first, due as usize)
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::{Span, TaskId};

    use super::*;

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_ms(ms)
    }

    fn settled(threads: usize) -> Batcher {
        let mut backlog = Batcher::default();
        for slot in 0..threads {
            backlog.settled(slot, false);
        }
        backlog
    }

    #[test]
    fn each_is_visited_once_in_a_round_however_often_the_loop_turns() {
        for (threads, round_ms) in [(120, 120), (1000, 1000), (3000, 1000)] {
            for turn_ms in [1, 7, 20, 100] {
                let mut backlog = settled(threads);
                backlog.turns(at_ms(10_000));
                let mut visits = vec![0; threads];
                for turn in 1..=round_ms * 7 / turn_ms {
                    let (first, due) = backlog.turns(at_ms(10_000 + turn * turn_ms));
                    (first..first + due).for_each(|slot| visits[slot % threads] += 1);
                }
                let rounds = round_ms * 7 / turn_ms * turn_ms / round_ms;
                let each = rounds..=rounds + 1;
                assert!(
                    visits.iter().all(|n| each.contains(n)),
                    "{threads} {turn_ms}"
                );
            }
        }
    }

    #[test]
    fn only_what_a_settled_thread_did_is_put_by_and_not_for_ever() {
        let mut backlog = settled(2);
        let burst = Burst::pulse(TaskId::recorded(1), at_ms(1));
        backlog.hurry(0);
        assert!(!backlog.put(0, &burst));
        assert!(!backlog.put(7, &burst), "nothing is known of it");
        for _ in 0..MOST {
            assert!(backlog.put(1, &burst));
        }
        assert!(!backlog.put(1, &burst));
        let (put_by, _) = backlog.take(1).unwrap();
        assert_eq!(put_by, [HeldEvent::Burst(Compact::of(&burst)); MOST]);
        assert!(backlog.take(1).is_none());
        let long = Burst {
            blocked: burst.woke + Span::from_ms(501),
            ..burst
        };
        assert!(!backlog.put(1, &long));
    }

    #[test]
    fn that_a_budget_ran_out_is_news_once() {
        let mut backlog = settled(1);
        assert!(!backlog.put_run_out(0, at_ms(1)));
        backlog.ran_out(0);
        assert!(backlog.put_run_out(0, at_ms(2)));
        backlog.visits(at_ms(10)).for_each(drop);
        assert!(backlog.put_run_out(0, at_ms(11)));
        backlog.visits(at_ms(20)).for_each(drop);
        assert!(!backlog.put_run_out(0, at_ms(21)));
        backlog.settled(0, true);
        assert!(
            backlog.put_run_out(0, at_ms(4)),
            "it has less than it wants"
        );
    }

    #[test]
    fn who_is_to_be_looked_at_is_heard_first() {
        let mut backlog = settled(1);
        assert!(!backlog.look_later(0), "nothing waits");
        backlog.put(0, &Burst::pulse(TaskId::recorded(1), at_ms(1)));
        assert!(backlog.look_later(0));
        let (memory, look) = backlog.take(0).unwrap();
        assert!(look);
        backlog.reuse(0, memory);
        assert!(backlog.take(0).is_none());
    }
}
