//! The constants of the loop. "From" is a derivation or a citation.

use onbeat_model::{Boost, Span};

/// Whether a clock is behind a period.
pub(crate) mod clock {
    use super::Span;

    /// A clock's wakeup counts in one period of this many: a thread that is late is awake when its
    /// timer expires, and half of a starved player's jobs are.
    pub(crate) const CLOCK_PERIODS: u64 = 2;
    /// The same for wakeups by another thread: the workers of a pool take turns at waking it.
    pub(crate) const WAKER_PERIODS: u64 = 4;
    /// Over how many periods wakeups are counted.
    pub(crate) const PERIODS: u64 = 16;
    /// The most threads that a chain of wakers is followed through. From: the longest chain in the
    /// recordings has five; 64 leaves room for pools whose workers all wake each other.
    pub(crate) const THREADS: usize = 64;
    /// A process has a clock if it had this many clock wakeups in each of the last two quarters of
    /// a second. From: a transcoder beside hogs hears one in half a second at most, once it has
    /// started; a starved player ten.
    pub(crate) const IN_EACH_QUARTER: u32 = 2;
    /// The time over which such wakeups are counted, and between two reviews of protection.
    pub(crate) const QUARTER: Span = Span::from_ms(250);
}

/// A thread whose rhythm is known.
pub(crate) mod lock {
    use super::Span;

    /// A period that is off by one part in this number was a guess.
    pub(crate) const GUESS: u64 = 100;
    /// Two periods that differ by less than one part in this number are the same rate.
    pub(crate) const SAME_RATE: u64 = 20;
    /// A thread that has not blocked for this many periods computes all the time.
    pub(crate) const LONGEST_JOB: u64 = 10;
    /// The same as a time, for short periods.
    pub(crate) const LONGEST_JOB_AT_LEAST: Span = Span::from_ms(400);
    /// The number of periods that a thread may be off its beat, or without an event.
    pub(crate) const SILENT_PERIODS: u64 = 12;
    /// The same as a time, for short periods.
    pub(crate) const SILENT_AT_LEAST: Span = Span::from_ms(1500);
    /// The number of analyses in a row that must disagree with a verified rhythm.
    pub(crate) const REJECTIONS: u32 = 3;
    /// The most analyses that must agree after a rhythm that was a chance.
    pub(crate) const NEEDED_MOST: u32 = 4;
}

/// Protection, and boosts for threads that notify.
pub(crate) mod protection {
    use super::{Boost, Span};

    /// The largest share of an ordinary thread. From: nice -20 is the kernel's least. The slice is
    /// shorter than the kernel's 3 ms, because only a thread with a shorter slice preempts a hog at
    /// its wakeup (PREEMPT_SHORT, Linux 6.12).
    pub(crate) const PROTECTED: Boost = Boost {
        levels: 20,
        slice: Span::from_ms(1),
        first: false,
    };
    /// What raises a thread where the kernel permits it. From: beside hogs, of three threads that
    /// decode a film's first frame with nice -20, all were on one CPU, a hog had half of the other.
    pub const FIRST: Boost = Boost {
        first: true,
        ..PROTECTED
    };
    /// The least time between two looks at what raised threads have used.
    pub(crate) const COUNTED_EVERY: Span = Span::from_ms(5);
    /// The time between two looks at the nice values of an application that begins. Its threads set
    /// values of their own as they begin, and wait behind all others until they are boosted again.
    pub(crate) const GLANCE: Span = Span::from_ms(50);
    /// An application keeps a beat for this long after its last rhythm or clock.
    pub(crate) const KEEPS: Span = Span::from_secs(2);
    /// A program with a rhythm shows it in less. Without one, and with `CAPACITY` of a CPU in use,
    /// the clock that it hears does not count: build tools and copiers hear one.
    pub(crate) const UNPROVED: Span = Span::from_secs(20);
    pub(crate) const CAPACITY: f64 = 0.9;
    /// The time between two looks at a thread that notified: its boost decays, and another program
    /// may have changed it.
    pub(crate) const LOOK_EVERY: Span = Span::from_ms(100);
    /// How long a thread's share of sleep is remembered after a notification: honest threads notify
    /// now and then.
    pub(crate) const REMEMBERED: Span = Span::from_secs(30);
}
