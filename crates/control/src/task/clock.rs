//! Finds out whether a clock is behind a period: a timer, a device, or another application.
//!
//! A batch program runs as fast as it can. Its threads wake each other at intervals that can look
//! periodic for seconds (the frames of an encoder), but these follow from the CPU time that it
//! gets, and a reservation would only give it more. A program with deadlines waits for time to pass
//! somewhere: in the thread itself, or in one that wakes it, directly or through others.

use onbeat_model::{Instant, Span};

use super::TaskTable;
use crate::estimation::Estimator;
use crate::task::Slot;
use crate::timer::QUARTER;

/// A clock's wakeup counts in one period of this many: a thread that is late is awake when its
/// timer expires, and half of a starved player's jobs are.
const CLOCK_PERIODS: u64 = 2;
/// A thread that works for another one wakes it in one period of this many: the workers of a pool
/// take turns.
pub(crate) const WAKER_PERIODS: u64 = 4;
/// Over how many periods wakeups are counted.
const PERIODS: u64 = 16;
/// The most threads that a chain of wakers is followed through: the longest in the recordings has
/// five, and workers of a pool may all wake each other.
const THREADS: usize = 64;

/// True if a clock wakes the thread in `slot` about once per `period`, or wakes the thread that
/// wakes it. True where the sensor tells no wakers, because all wakeups seem to come from
/// interrupts.
pub(crate) fn has_clock(tasks: &TaskTable, slot: Slot, period: Span, now: Instant) -> bool {
    let span = (period * PERIODS).max(QUARTER * 2);
    let mut reached = vec![slot];
    let mut next = 0;
    while let Some(&slot) = reached.get(next) {
        next += 1;
        let Some(thread) = tasks.get(slot).map(|thread| &thread.estimator) else {
            continue;
        };
        let (by_clock, by_threads) = wakeups_since(tasks, thread, now - span);
        // A young thread has no history of that length.
        let span = span.min(now.since(thread.first_heard()));
        if period * CLOCK_PERIODS * by_clock >= span {
            return true;
        }
        for (waker, count) in by_threads {
            let often = period * WAKER_PERIODS * count >= span;
            if often && reached.len() < THREADS && !reached.contains(&waker) {
                reached.push(waker);
            }
        }
    }
    false
}

/// How often a clock woke the thread since then, and how often each other thread did.
fn wakeups_since(tasks: &TaskTable, thread: &Estimator, since: Instant) -> (u64, Vec<(Slot, u64)>) {
    let mut by_clock = 0;
    let mut by_threads: Vec<(Slot, u64)> = Vec::new();
    for burst in thread.bursts().rev().take_while(|b| b.woke >= since) {
        match tasks.find_number(burst.waker) {
            Some(waker) => match by_threads.iter_mut().find(|(slot, _)| *slot == waker) {
                Some((_, count)) => *count += 1,
                None => by_threads.push((waker, 1)),
            },
            // A thread that has ended meanwhile is no clock. An interrupt is, and so is a thread
            // that is not tracked.
            None => by_clock += u64::from(!tasks.has_left(burst.waker)),
        }
    }
    (by_clock, by_threads)
}
