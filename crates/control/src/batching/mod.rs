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

pub(crate) mod pace;

use onbeat_infer::period::Compact;
use onbeat_model::{Actuator, Burst, Instant, Span, TaskId};

use crate::allocation::MANY;
use crate::allocation::arbiter::is_small;
use crate::run_loop::Controller;
use crate::task::table::Slot;
use pace::Pace;

/// The time between two visits, for each thread.
const EACH: Span = Span::from_ms(1);
/// The longest time between two visits of a thread.
const LONGEST: Span = Span::from_secs(1);
/// The number of held events at which a thread is visited out of turn.
const MOST: usize = 32;
/// A longer burst is taken in at once.
const LONGEST_BURST: Span = Span::from_ms(500);
/// The number of visits for which another exhausted budget is no news.
const NEWS_AFTER: u8 = 2;

/// The pace of the loop, and the events that it holds back.
#[derive(Debug, Default)]
pub(crate) struct Batching {
    pub(crate) pace: Pace,
    pub(crate) backlog: Backlog,
}

/// The held events, and the thread to visit next.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    threads: Vec<Waiting>,
    next: Slot,
    /// The time of the last visit.
    since: Instant,
}

/// A thread's state without its record.
#[derive(Debug, Default)]
struct Waiting {
    put_by: Vec<Did>,
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
pub(crate) enum Did {
    Burst(Compact),
    RanOut(Instant),
}

impl Backlog {
    fn settled(&mut self, slot: Slot, is_short: bool) {
        if slot >= self.threads.len() {
            self.threads.resize_with(slot + 1, Waiting::default);
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
            *thread = Waiting::default();
        }
    }

    fn with_room(&mut self, slot: Slot) -> Option<&mut Waiting> {
        let thread = self.threads.get_mut(slot)?;
        (thread.is_settled && thread.put_by.len() < MOST).then_some(thread)
    }

    /// Holds the burst back; false if it is to be taken in now.
    fn put(&mut self, slot: Slot, burst: &Burst) -> bool {
        let is_long = burst.response().max(burst.executed) > LONGEST_BURST;
        let Some(thread) = self.with_room(slot).filter(|_| !is_long) else {
            return false;
        };
        thread.put_by.push(Did::Burst(Compact::of(burst)));
        true
    }

    /// Holds an exhausted budget back; false if it is news.
    fn put_run_out(&mut self, slot: Slot, at: Instant) -> bool {
        let Some(thread) = self.with_room(slot) else {
            return false;
        };
        let is_news = !thread.is_short && thread.ran_out == 0;
        if !is_news {
            thread.put_by.push(Did::RanOut(at));
        }
        !is_news
    }

    fn ran_out(&mut self, slot: Slot) {
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
    fn take(&mut self, slot: Slot) -> Option<(Vec<Did>, bool)> {
        let thread = self.threads.get_mut(slot)?;
        let put_by = std::mem::take(&mut thread.put_by);
        (!put_by.is_empty()).then(|| (put_by, std::mem::take(&mut thread.look)))
    }

    /// The memory that [`take`](Self::take) gave, for what comes next.
    fn reuse(&mut self, slot: Slot, mut memory: Vec<Did>) {
        memory.clear();
        if let Some(thread) = self.threads.get_mut(slot) {
            thread.put_by = memory;
        }
    }

    /// The threads to visit by `now`: the first one, and their number.
    fn turns(&mut self, now: Instant) -> (Slot, usize) {
        let threads = self.threads.len() as u64;
        let round = (EACH * threads).min(LONGEST);
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

impl<A: Actuator> Controller<A> {
    /// How long to wait for events at most.
    #[must_use]
    pub fn pace(&self) -> Span {
        let calm = self.batching.pace.is_calm() && self.power.is_none();
        self.settings.pace * if calm { self.crowd() } else { 1 }
    }

    /// How many rhythms this turn may verify. Among many threads some always wait, and none needs
    /// it soon.
    pub(crate) fn verifications(&self) -> usize {
        let most = self.settings.analyses_per_turn;
        if self.crowd() > 1 {
            most.min(pace::OF_A_CROWD)
        } else {
            most
        }
    }

    /// The factor by which the pauses grow with the number of threads.
    pub(crate) fn crowd(&self) -> u64 {
        (self.tasks.len() as u64 / pace::FEW_THREADS).clamp(1, pace::LONGEST)
    }

    fn may_put_by(&self) -> bool {
        self.tasks.len() >= MANY && self.power.is_none()
    }

    /// True if an exhausted budget waits for the next turn. If 100 threads or more do not fit,
    /// there would be thousands a second.
    #[must_use]
    pub fn lets_wait(&self) -> bool {
        self.arbiter.is_overloaded() && self.may_put_by()
    }

    pub(crate) fn burst(&mut self, burst: &Burst, now: Instant) {
        let slot = self.slot_of(burst.task, burst.woke);
        if let Some(pipelines) = &mut self.pipelines {
            pipelines.woken(burst);
        }
        if self.batching.backlog.put(slot, burst) {
            return;
        }
        self.hear_of(slot, now);
        self.hear_burst(slot, burst);
        self.may_settle(slot);
    }

    pub(crate) fn exhausted(&mut self, task: TaskId, at: Instant, now: Instant) {
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        if !self.arbiter.is_overloaded() || !self.batching.backlog.put_run_out(slot, at) {
            self.hear_of(slot, now);
            self.hear_run_out(slot, at);
        }
        self.batching.backlog.ran_out(slot);
    }

    /// Visits the threads that are due.
    pub(crate) fn hear_in_turn(&mut self, now: Instant) {
        if !self.may_put_by() {
            self.hear_all(now);
            self.batching.backlog = Backlog::default();
            return;
        }
        let (first, due) = self.batching.backlog.turns(now);
        let threads = self.batching.backlog.threads.len();
        for slot in (first..first + due).map(|turn| turn % threads.max(1)) {
            if let Some(thread) = self.batching.backlog.threads.get_mut(slot) {
                thread.ran_out = thread.ran_out.saturating_sub(1);
            }
            self.hear_of(slot, now);
        }
    }

    /// Takes in all held events, before a question about `now` is answered.
    pub fn hear_all(&mut self, now: Instant) {
        for slot in 0..self.batching.backlog.threads.len() {
            self.hear_of(slot, now);
        }
    }

    /// Takes in the held events of the thread in `slot`.
    pub(crate) fn hear_of(&mut self, slot: Slot, now: Instant) {
        let Some((put_by, look)) = self.batching.backlog.take(slot) else {
            return;
        };
        let Some(task) = self.tasks.get_mut(slot).map(|thread| thread.task.id) else {
            return;
        };
        for did in &put_by {
            match did {
                Did::Burst(burst) => self.hear_burst(slot, &burst.burst(task)),
                Did::RanOut(at) => self.hear_run_out(slot, *at),
            }
        }
        self.batching.backlog.reuse(slot, put_by);
        self.may_settle(slot);
        if look {
            self.look_at(task, now);
        }
    }

    /// Holds the thread's next events back if it is settled.
    fn may_settle(&mut self, slot: Slot) {
        if !self.may_put_by() {
            return;
        }
        let thread = self.tasks.get(slot);
        let Some(thread) = thread.filter(|thread| thread.is_settled()) else {
            self.batching.backlog.hurry(slot);
            return;
        };
        let wanted = thread.place.and_then(|place| self.arbiter.request(place));
        let wanted = wanted.map(|request| request.wanted);
        let wants_more =
            wanted.map(|wanted| wanted.bandwidth()) > thread.held().map(|held| held.bandwidth());
        let is_short = wants_more && !is_small(thread.held(), wanted);
        self.batching.backlog.settled(slot, is_short);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_ms(ms)
    }

    fn settled(threads: usize) -> Backlog {
        let mut backlog = Backlog::default();
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
        assert_eq!(put_by, [Did::Burst(Compact::of(&burst)); MOST]);
        assert!(backlog.take(1).is_none());
        let long = Burst {
            blocked: burst.woke + LONGEST_BURST * 2,
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
        backlog.threads[0].ran_out = 0;
        assert!(!backlog.put_run_out(0, at_ms(3)));
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
