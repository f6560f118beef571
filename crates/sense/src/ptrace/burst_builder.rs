//! A thread's bursts, from looks at its account whenever it is about to make a call that may wait.
//!
//! Wakeups are not seen, but they can be computed. Between two looks a thread ran, waited for a
//! CPU, or slept, and the scheduler's account (`/proc/TID/schedstat`) tells the first two. The rest
//! is sleep, and as a thread sleeps in the call that it was let into at the earlier look, it woke
//! as long before the later look as it has run and waited since. So one stop for each call is
//! enough, and a call that did not sleep ends no burst.
//!
//! Assumptions: a thread sleeps nowhere else (a page that must be read, a call that is not stopped
//! at: the wakeup is then that of the last such sleep, if it is the longer one, or else too early
//! by it); the wait for a CPU after the stop itself is short.

use onbeat_model::{Burst, Instant, Span, TaskId};

/// A shorter sleep does not end a burst. The tracer itself is some tens of microseconds late, from
/// which it cannot be told.
const SHORTEST_SLEEP: Span = Span::from_us(100);

/// The scheduler's account of a thread, up to some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SchedStat {
    pub(super) executed: Span,
    /// For how long it was ready and had no CPU.
    pub(super) waited: Span,
    pub(super) slices: u64,
}

impl SchedStat {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        Some(Self {
            executed: Span::from_ns(next()?),
            waited: Span::from_ns(next()?),
            slices: next()?,
        })
    }
}

#[derive(Clone, Debug)]
pub(super) struct Course {
    burst: Burst,
    account: SchedStat,
    /// When it was let go on after the last look.
    resumed: Instant,
}

impl Course {
    pub(super) fn new(task: TaskId, at: Instant, account: SchedStat) -> Self {
        Self {
            burst: Burst::pulse(task, at),
            account,
            resumed: at,
        }
    }

    /// It stopped at a call at `at`; gives the burst that ended in the call before, if that slept.
    pub(super) fn stopped(&mut self, at: Instant, account: SchedStat) -> Option<Burst> {
        let executed = account.executed - self.account.executed;
        let waited = account.waited - self.account.waited;
        // One of them after the stop itself.
        let slices = account.slices.saturating_sub(self.account.slices);
        let again = u32::try_from(slices.saturating_sub(1)).unwrap_or(u32::MAX);
        let slept = at.since(self.resumed) - executed - waited;
        self.account = account;
        if again == 0 || slept < SHORTEST_SLEEP {
            self.burst.blocked = at;
            self.burst.executed += executed;
            self.burst.preempted = self.burst.preempted.saturating_add(again);
            return None;
        }
        let woke = at - executed - waited;
        let next = Burst {
            woke,
            first_ran: (woke + waited).min(at),
            blocked: at,
            executed,
            preempted: again - 1,
            ..self.burst
        };
        Some(std::mem::replace(&mut self.burst, next))
    }

    pub(super) fn resumed(&mut self, at: Instant) {
        self.resumed = at;
    }

    pub(super) fn finish(self) -> Burst {
        self.burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_us(us: u64) -> Instant {
        Instant::ZERO + Span::from_us(us)
    }

    fn account(executed_us: u64, waited_us: u64, slices: u64) -> SchedStat {
        SchedStat {
            executed: Span::from_us(executed_us),
            waited: Span::from_us(waited_us),
            slices,
        }
    }

    #[test]
    fn calls_that_do_not_sleep_and_preemptions_end_no_burst() {
        let mut course = Course::new(TaskId::recorded(1), at_us(0), account(0, 0, 1));
        // A call that returns at once: the CPU is lost at the stop only.
        assert_eq!(course.stopped(at_us(1_000), account(1_000, 0, 2)), None);
        course.resumed(at_us(1_500));
        assert_eq!(course.stopped(at_us(2_000), account(1_400, 0, 3)), None);
        course.resumed(at_us(2_020));
        // Preempted twice, for 4 ms each.
        assert_eq!(
            course.stopped(at_us(13_020), account(4_400, 8_000, 6)),
            None
        );
        let burst = course.finish();
        assert_eq!((burst.woke, burst.blocked), (at_us(0), at_us(13_020)));
        assert_eq!((burst.executed, burst.preempted), (Span::from_us(4_400), 2));
    }
}
