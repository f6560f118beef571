//! A burst in 24 bytes, for as long as analyses look at it, or until it is heard: windows of them
//! are most of what a tracked thread takes of memory.

use onbeat_model::{Burst, Instant, Span, TaskId};

/// A burst in less memory, for analyses, job separators and predictors. Not kept: whose it is, how
/// often it was preempted, and the nanoseconds of times above a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compact {
    woke: Instant,
    first_ran_after: Short,
    blocked_after: Short,
    executed: Short,
    woken_by: WokenBy,
}

impl Compact {
    #[must_use]
    pub fn of(burst: &Burst) -> Self {
        Self {
            woke: burst.woke,
            first_ran_after: Short::of(burst.first_ran.since(burst.woke), false),
            blocked_after: Short::of(burst.response(), false),
            executed: Short::of(burst.executed, burst.exhausted),
            woken_by: WokenBy::of(burst),
        }
    }

    pub(super) const fn woke(&self) -> Instant {
        self.woke
    }

    pub(super) fn blocked(&self) -> Instant {
        self.woke + self.blocked_after.span()
    }

    pub(super) fn waited(&self) -> Span {
        self.blocked_after.span() - self.executed.span()
    }

    pub(super) const fn waker(&self) -> u32 {
        self.woken_by.waker()
    }

    /// See [`Burst::expiry`]; none if the thread was later than 2 s.
    #[must_use]
    pub fn expiry(&self) -> Option<Instant> {
        self.woken_by.late().map(|late| self.woke - late)
    }

    pub(super) fn executed(&self) -> Span {
        self.executed.span()
    }

    #[must_use]
    pub fn burst(&self, task: TaskId) -> Burst {
        Burst {
            task,
            woke: self.woke,
            first_ran: self.woke + self.first_ran_after.span(),
            blocked: self.woke + self.blocked_after.span(),
            executed: self.executed(),
            preempted: 0,
            waker: self.waker(),
            exhausted: self.executed.is_flagged(),
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

/// A time and a flag: to the nanosecond up to a second, longer ones to the microsecond, up to a
/// quarter of an hour. Nothing that is made of a burst depends on the last microsecond of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Short(u32);

impl Short {
    const FLAG: u32 = 1 << 31;
    const IN_US: u32 = 1 << 30;
    const MOST: u32 = Self::IN_US - 1;

    fn of(span: Span, flag: bool) -> Self {
        let ns = span.as_ns();
        let bits = match u32::try_from(ns) {
            Ok(ns) if ns <= Self::MOST => ns,
            _ => u32::try_from(ns / 1000).map_or(Self::MOST, |us| us.min(Self::MOST)) | Self::IN_US,
        };
        Self(if flag { bits | Self::FLAG } else { bits })
    }

    const fn is_flagged(self) -> bool {
        self.0 & Self::FLAG != 0
    }

    const fn span(self) -> Span {
        let value = (self.0 & Self::MOST) as u64;
        if self.0 & Self::IN_US == 0 {
            Span::from_ns(value)
        } else {
            Span::from_us(value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(executed: Span, exhausted: bool) -> Burst {
        let woke = Instant::from_ns(1 << 60);
        Burst {
            task: TaskId::recorded(4),
            woke,
            first_ran: woke + executed / 3,
            blocked: woke + executed * 2,
            executed,
            preempted: 0,
            waker: i32::MAX as u32,
            exhausted,
            expiry: None,
        }
    }

    #[test]
    fn a_burst_of_less_than_half_a_second_comes_back_as_it_was() {
        assert_eq!(size_of::<Compact>(), 24);
        for ns in [0, 1, 999, 1_234_567, 499_999_999] {
            for exhausted in [false, true] {
                let burst = burst(Span::from_ns(ns), exhausted);
                assert_eq!(Compact::of(&burst).burst(burst.task), burst);
            }
        }
    }

    #[test]
    fn an_expiry_comes_back_if_the_wakeup_was_at_most_two_seconds_late() {
        for late in [0, 1, 50_000, 2_000_000_000] {
            let woken = Burst {
                waker: 0,
                ..burst(Span::from_ms(3), true)
            };
            let woken = Burst {
                expiry: Some(woken.woke - Span::from_ns(late)),
                ..woken
            };
            assert_eq!(Compact::of(&woken).burst(woken.task), woken);
        }
        let woken = burst(Span::from_ms(3), true);
        for expiry in [woken.woke - Span::from_secs(3), woken.blocked] {
            let expiry = Some(expiry);
            assert_eq!(Compact::of(&Burst { expiry, ..woken }), Compact::of(&woken));
        }
    }
}
