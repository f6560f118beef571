//! A burst in 24 bytes, for as long as analyses look at it: windows of them are most of what a
//! tracked thread takes of memory.

use onbeat_model::{Burst, Instant, Span, TaskId};

/// A burst in less memory. Not kept: whose it is, how often it was preempted, whether a budget ran
/// out, and what took longer than 4 s, four times the longest period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compact {
    woke: Instant,
    first_ran_after: u32,
    blocked_after: u32,
    executed: u32,
    woken_by: WokenBy,
}

impl Compact {
    pub(super) fn of(burst: &Burst) -> Self {
        Self {
            woke: burst.woke,
            first_ran_after: short(burst.first_ran.since(burst.woke)),
            blocked_after: short(burst.response()),
            executed: short(burst.executed),
            woken_by: WokenBy::of(burst),
        }
    }

    pub(super) const fn woke(&self) -> Instant {
        self.woke
    }

    pub(super) fn blocked(&self) -> Instant {
        self.woke + long(self.blocked_after)
    }

    pub(super) fn waited(&self) -> Span {
        long(self.blocked_after) - self.executed()
    }

    pub(super) const fn waker(&self) -> u32 {
        self.woken_by.waker()
    }

    /// See [`Burst::expiry`]; none if the thread was later than 2 s.
    pub(super) fn expiry(&self) -> Option<Instant> {
        self.woken_by.late().map(|late| self.woke - late)
    }

    pub(super) const fn executed(&self) -> Span {
        long(self.executed)
    }

    pub(super) fn burst(&self, task: TaskId) -> Burst {
        Burst {
            task,
            woke: self.woke,
            first_ran: self.woke + long(self.first_ran_after),
            blocked: self.blocked(),
            executed: self.executed(),
            preempted: 0,
            waker: self.waker(),
            exhausted: false,
            expiry: self.expiry(),
        }
    }
}

/// The waker, which a thread that its timer woke has none of; or how late the timer did, in
/// nanoseconds, with a flag that no thread's number has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WokenBy(u32);

impl WokenBy {
    const TIMER: u32 = 1 << 31;

    fn of(burst: &Burst) -> Self {
        let late = burst.expiry.filter(|&expiry| expiry <= burst.woke);
        let late = late.and_then(|expiry| u32::try_from(burst.woke.since(expiry).as_ns()).ok());
        match late.filter(|&late| late < Self::TIMER) {
            Some(late) => Self(late | Self::TIMER),
            None => Self(burst.waker & !Self::TIMER),
        }
    }

    const fn waker(self) -> u32 {
        if self.0 & Self::TIMER == 0 { self.0 } else { 0 }
    }

    fn late(self) -> Option<Span> {
        (self.0 & Self::TIMER != 0).then(|| Span::from_ns((self.0 & !Self::TIMER).into()))
    }
}

fn short(span: Span) -> u32 {
    u32::try_from(span.as_ns()).unwrap_or(u32::MAX)
}

const fn long(ns: u32) -> Span {
    Span::from_ns(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(executed: Span) -> Burst {
        let woke = Instant::from_ns(1 << 60);
        Burst {
            task: TaskId::recorded(4),
            woke,
            first_ran: woke + executed / 3,
            blocked: woke + executed * 2,
            executed,
            preempted: 0,
            waker: i32::MAX as u32,
            exhausted: false,
            expiry: None,
        }
    }

    #[test]
    fn a_burst_of_less_than_two_seconds_comes_back_as_it_was() {
        assert_eq!(size_of::<Compact>(), 24);
        for ns in [0, 1, 999, 1_234_567, 1_999_999_999] {
            let burst = burst(Span::from_ns(ns));
            assert_eq!(Compact::of(&burst).burst(burst.task), burst);
        }
    }

    #[test]
    fn an_expiry_comes_back_if_the_wakeup_was_at_most_two_seconds_late() {
        for late in [0, 1, 50_000, 2_000_000_000] {
            let woken = Burst {
                waker: 0,
                ..burst(Span::from_ms(3))
            };
            let woken = Burst {
                expiry: Some(woken.woke - Span::from_ns(late)),
                ..woken
            };
            assert_eq!(Compact::of(&woken).burst(woken.task), woken);
        }
        let woken = burst(Span::from_ms(3));
        for expiry in [woken.woke - Span::from_secs(3), woken.blocked] {
            let expiry = Some(expiry);
            assert_eq!(Compact::of(&Burst { expiry, ..woken }), Compact::of(&woken));
        }
    }
}
