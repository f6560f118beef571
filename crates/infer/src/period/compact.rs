//! A burst in 24 bytes, for as long as analyses look at it, or until it is heard: windows of them
//! are most of what a tracked thread takes of memory.

use onbeat_model::{Burst, Instant, Span, TaskId};

/// What analyses, job separators and predictors ask of a burst. Not kept: whose it is, how often it
/// was preempted, and of what took longer than a second, the nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compact {
    woke: Instant,
    first_ran_after: Short,
    blocked_after: Short,
    executed: Short,
    waker: u32,
}

impl Compact {
    /// The burst, as far as it is kept.
    #[must_use]
    pub fn of(burst: &Burst) -> Self {
        Self {
            woke: burst.woke,
            first_ran_after: Short::of(burst.first_ran.since(burst.woke), false),
            blocked_after: Short::of(burst.response(), false),
            executed: Short::of(burst.executed, burst.exhausted),
            waker: burst.waker,
        }
    }

    pub(super) const fn woke(&self) -> Instant {
        self.woke
    }

    pub(super) const fn waker(&self) -> u32 {
        self.waker
    }

    pub(super) fn executed(&self) -> Span {
        self.executed.span()
    }

    /// The burst again, of `task`.
    #[must_use]
    pub fn burst(&self, task: TaskId) -> Burst {
        Burst {
            task,
            woke: self.woke,
            first_ran: self.woke + self.first_ran_after.span(),
            blocked: self.woke + self.blocked_after.span(),
            executed: self.executed(),
            preempted: 0,
            waker: self.waker,
            exhausted: self.executed.is_flagged(),
        }
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
            waker: u32::MAX,
            exhausted,
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
    fn a_longer_one_comes_back_to_the_microsecond_and_none_is_longer_than_a_quarter_of_an_hour() {
        for ns in [1 << 30, 2_345_678_901, 600_000_000_001] {
            let short = Short::of(Span::from_ns(ns), true);
            assert_eq!(short.span(), Span::from_us(ns / 1000));
            assert!(short.is_flagged());
        }
        assert!(Short::of(Span::MAX, false).span() > Span::from_secs(15 * 60));
        assert!(!Short::of(Span::MAX, false).is_flagged());
    }
}
