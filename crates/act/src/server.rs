//! How a task's server (its runtime left, and the deadline it is for) stands, as the kernel tells
//! in `/proc/TID/sched`, and what follows from it.
//!
//! A task that is running when it is reserved (and any task, where the scheduler feature HRTICK_DL
//! is off) runs over its runtime until the next tick, and pays with as many periods as that takes.
//! Its deadline, and with it its 0-lag time, can then lie many periods ahead:
//! `task_non_contending` in `kernel/sched/deadline.c` takes deadline - runtime * period / runtime
//! per period, where the runtime left is negative.

use std::sync::mpsc;
use std::{fs, io};

use onbeat_kernel::clock;
use onbeat_model::{Instant, Reservation, Span, TaskId};

use crate::attributes::{Attributes, Policy, with_kept_nice};
use crate::limits::{DL_SCALE_NS, may_reserve};
use crate::task;

/// The longest tick, of 100 Hz: a running task gets over its runtime unseen for as long.
const TICK: Span = Span::from_ms(10);
/// A throttled task whose runtime should have been replenished this long ago never will be: the
/// kernel's timer is milliseconds late at most.
const OVERDUE: Span = Span::from_secs(1);
/// The share by which two clocks of the kernel may drift apart (adjtimex(2)).
const DRIFT: f64 = 500e-6;
/// How long a comparison of these clocks is used.
const GOOD_FOR: Span = Span::from_secs(600);
/// By this it is measured how exactly the kernel ends a reserved task's turn: with the scheduler
/// feature HRTICK_DL within some 10 us, without at the next tick, 1 to 10 ms later. The switch
/// cannot be read on a locked-down kernel.
const PROBED_RUNTIME: Span = Span::from_us(200);
/// And in this time. A pause of `PROBED_PERIOD` - `PROBED_RUNTIME` is far longer than `GAP`.
const PROBED_PERIOD: Span = Span::from_ms(50);
/// A thread that does not run for this long was throttled. Above the 10 ms for which an interrupt
/// or another thread stops it, and below `PROBED_PERIOD`.
const GAP: Span = Span::from_ms(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// The rest of the runtime; negative after an overrun. For a running task, as of the last tick.
    runtime_ns: i64,
    /// For when, on the kernel's scheduler clock.
    deadline_ns: i64,
}

impl Server {
    /// The server of `task`; none where the kernel does not tell, or the server was never used.
    pub(crate) fn read(task: TaskId) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{}/sched", task.tid)).ok()?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            line.rsplit_once(':')?.1.trim().parse().ok()
        };
        let server = Self {
            runtime_ns: field("dl.runtime")?,
            deadline_ns: field("dl.deadline")?,
        };
        (server.deadline_ns > 0).then_some(server)
    }

    pub(crate) fn is_throttled(&self) -> bool {
        self.runtime_ns <= 0
    }

    /// When, if the task leaves `reservation` now, the kernel will have forgotten its server. The
    /// run time of a running task since the last tick is not known, and taken to be all it can be.
    pub(super) fn zero_lag(
        &self,
        reservation: Reservation,
        asleep: bool,
        clock: &SchedulerClock,
    ) -> Instant {
        let unseen = if asleep || self.is_throttled() {
            Span::ZERO
        } else {
            TICK
        };
        let over = Span::from_ns(self.runtime_ns.min(0).unsigned_abs()) + unseen;
        let lag = over.scale(reservation.period().ratio(reservation.runtime()));
        clock.instant(self.deadline_ns) + lag
    }

    /// Whether the task, when it had run over its runtime, inherited the reservation of one that
    /// waits for its lock: the kernel then puts its deadline off by the other's periods, which may
    /// give a hundredth of what its own do.
    pub(super) fn pays_for_another(
        &self,
        reservation: Reservation,
        clock: &SchedulerClock,
        now: Instant,
    ) -> bool {
        let own = TICK.ratio(reservation.runtime()).ceil() + 2.0;
        clock.instant(self.deadline_ns) > now + reservation.period().scale(own)
    }

    /// Whether the task is throttled for good: it was reserved again before its 0-lag time, by a
    /// program that did not know that. The next runtime is due a period after the one whose
    /// deadline the server has.
    pub(super) fn is_stuck(
        &self,
        reservation: Reservation,
        clock: &SchedulerClock,
        now: Instant,
    ) -> bool {
        let replenished =
            clock.instant(self.deadline_ns) + (reservation.period() - reservation.deadline());
        self.is_throttled() && replenished + OVERDUE < now
    }
}

/// The scheduler's clock against CLOCK_MONOTONIC. It is in no system call, but the deadline of a
/// fresh reservation tells it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchedulerClock {
    ahead_ns: i64,
    measured: Instant,
}

impl SchedulerClock {
    /// Compares the clocks, on a short-lived thread that takes a reservation. None if it gets none,
    /// or the kernel does not tell.
    pub(super) fn measure() -> Option<Self> {
        if !may_reserve() {
            return None;
        }
        // An interrupted reading is long.
        let (_, best) = (0..3)
            .filter_map(|_| Self::read())
            .min_by_key(|(took, _)| *took)?;
        Some(best)
    }

    fn read() -> Option<(Span, Self)> {
        let period = Span::from_ms(100);
        let fresh = Reservation::implicit(Span::from_us(100), period).ok()?;
        let (sender, receiver) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        // It sleeps while its server is read: that takes longer than its runtime, and would have it
        // throttled for some periods.
        std::thread::spawn(move || {
            let own = task::own().ok()?;
            let before = clock::now();
            Attributes::reserved(fresh, false).set(0).ok()?;
            sender.send((own, before, clock::now())).ok()?;
            ended.recv().ok()
        });
        let read = receiver.recv().ok().and_then(|(own, before, after)| {
            let server = Server::read(own)?;
            Some((server, before, after))
        });
        // No process waits for its end: it may be throttled by then, for a whole period.
        drop(end);
        let (server, before, after) = read?;
        let set_at = server.deadline_ns.checked_sub_unsigned(period.as_ns())?;
        let ahead_ns = set_at.checked_sub_unsigned(after.as_ns())?;
        let clock = Self {
            ahead_ns,
            measured: after,
        };
        Some((after.since(before), clock))
    }

    pub(super) fn is_stale(&self, now: Instant) -> bool {
        now.since(self.measured) > GOOD_FOR
    }

    /// A time of the scheduler's clock, at the latest that it can be.
    fn instant(&self, scheduler_ns: i64) -> Instant {
        let ns = scheduler_ns.saturating_sub(self.ahead_ns);
        let instant = Instant::from_ns(u64::try_from(ns).unwrap_or(0));
        instant + clock::now().since(self.measured).scale(DRIFT)
    }
}

/// What a thread that always wants to run got of a runtime before it was stopped, and that runtime.
pub(crate) fn measure() -> Option<(Span, Span)> {
    let reservation = Reservation::implicit(PROBED_RUNTIME, PROBED_PERIOD).ok()?;
    let measure = std::thread::spawn(move || used_before_stopped(reservation));
    Some((measure.join().ok()??, PROBED_RUNTIME))
}

/// The CPU time that the calling thread, which always wants to run, gets of a `reservation` before
/// it is stopped for the first time; none if it gets none, or is not stopped. The thread keeps the
/// reservation until it ends.
pub(crate) fn used_before_stopped(reservation: Reservation) -> Option<Span> {
    Attributes::reserved(reservation, false).set(0).ok()?;
    let begun = clock::thread_cpu_time();
    let end = clock::now() + reservation.period() * 10;
    let mut last: (Instant, Span) = (clock::now(), begun);
    while last.0 < end {
        let now = (clock::now(), clock::thread_cpu_time());
        if now.0.since(last.0) > GAP {
            return Some(last.1 - begun);
        }
        last = now;
    }
    None
}

// Taking a task out of SCHED_DEADLINE at a moment when the kernel's account stays right. Its state
// matters:
//
// * runnable and within its runtime: the kernel uncounts it at its 0-lag time;
// * throttled: the same, but the throttling stays until then. It is better waited for;
// * asleep: past its 0-lag time it would stay counted for good. So its reservation is shrunk to the
//   least there is just before it leaves, and what leaks is some millionths of a CPU.

/// The reservation `set`, shrunk to the least runtime there is; none if it is no reservation. A
/// task can be found with it if onbeat was killed in the middle of a give-back.
pub(crate) fn shrunk(set: &Attributes) -> Option<Attributes> {
    let mut least = *set;
    match &mut least.policy {
        Policy::Deadline(deadline) => deadline.runtime_ns = DL_SCALE_NS,
        _ => return None,
    }
    Some(least)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    Left,
    /// Another program had just changed the task to this: left as it is.
    TakenOver(Attributes),
}

/// Gives `task`, which has `set` and the `server` and may be `asleep`, what it had `before`.
/// Fails with what the kernel says; the task then has `set` again. `ESRCH` if it is gone.
pub(crate) fn leave(
    task: TaskId,
    server: Option<Server>,
    asleep: bool,
    set: &Attributes,
    before: &Attributes,
) -> io::Result<Leaving> {
    // Shrinking stops the timer that would end the throttling.
    let throttled = server.is_some_and(|server| server.is_throttled());
    let least = shrunk(set).filter(|_| asleep && !throttled);
    let before = with_kept_nice(*before, set, task.tid)?;
    let now = Attributes::get(task.tid)?;
    if !task::is_alive(task) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    if now != *set {
        return Ok(Leaving::TakenOver(now));
    }
    let is_shrunk = least.is_some_and(|least| least.set(task.tid).is_ok());
    let left = before.set(task.tid);
    if left.is_err() && is_shrunk {
        // It had room for this a moment ago. If not now, what is left is known, too: see `shrunk`.
        let _ = set.set(task.tid);
    }
    left.map(|()| Leaving::Left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throttled_task_is_stuck_when_its_next_period_is_long_past_and_no_sooner() {
        let (deadline, period) = (Span::from_ms(30), Span::from_secs(4));
        let reservation = Reservation::new(Span::from_ms(10), deadline, period).unwrap();
        let now = clock::now();
        let clock = SchedulerClock {
            ahead_ns: 0,
            measured: now,
        };
        let throttled = Server {
            runtime_ns: 0,
            deadline_ns: i64::try_from(now.as_ns()).unwrap(),
        };
        // Its runtime comes 3.97 s after its deadline.
        assert!(!throttled.is_stuck(reservation, &clock, now + Span::from_ms(4900)));
        assert!(throttled.is_stuck(reservation, &clock, now + Span::from_ms(5000)));
        let served = Server {
            runtime_ns: 1,
            ..throttled
        };
        assert!(!served.is_stuck(reservation, &clock, now + Span::from_secs(60)));
    }

    #[test]
    fn a_task_pays_for_another_when_no_overrun_of_its_own_has_its_deadline_that_late() {
        let reservation = Reservation::implicit(Span::from_ms(4), Span::from_ms(20)).unwrap();
        let now = clock::now();
        let clock = SchedulerClock {
            ahead_ns: 0,
            measured: now,
        };
        let for_in = |ms| Server {
            runtime_ns: -1,
            deadline_ns: i64::try_from((now + Span::from_ms(ms)).as_ns()).unwrap(),
        };
        // A tick of 10 ms takes three periods.
        assert!(!for_in(99).pays_for_another(reservation, &clock, now));
        assert!(for_in(101).pays_for_another(reservation, &clock, now));
    }

    #[test]
    fn an_overrun_is_paid_with_as_many_periods_as_it_takes() {
        // Seen: 200 us every 20 ms, and 3.65 ms run over between two ticks.
        let reservation = Reservation::implicit(Span::from_us(200), Span::from_ms(20)).unwrap();
        let clock = SchedulerClock {
            ahead_ns: 1_000_000_000,
            measured: clock::now(),
        };
        let overrun = Server {
            runtime_ns: -3_650_000,
            deadline_ns: 101_000_000_000,
        };
        let zero_lag = overrun.zero_lag(reservation, false, &clock);
        let expected = Instant::from_ns(100_000_000_000) + Span::from_ms(365);
        assert!(zero_lag >= expected && zero_lag < expected + Span::from_ms(1));
    }
}
