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
    /// Only where the longest of the last jobs is this many times the usual one does a budget not
    /// learn what is needed. From: frames of one film differ by 2 to 3 times; a worker's that is
    /// not needed in most periods by 100 times and more.
    pub(crate) const UNEVEN: u64 = 4;
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

/// Reservations that do harm.
pub(crate) mod harm {
    use super::Span;

    /// A predictor with fewer jobs is still learning. From: N in LFS++, section 5.3.
    pub(crate) const LEARNING: u32 = 16;
    /// The most late jobs of the last 64 that are chance. From: one job in a hundred is to overrun;
    /// more than four of 64 come of that in one case of 500 (binomial distribution).
    pub(crate) const LATE_MOST: u32 = 4;
    /// The first pause of a thread whose reservation did it harm. Each further one is twice as
    /// long.
    pub(crate) const PAUSE: Span = Span::from_secs(20);
    /// The longest such pause.
    pub(crate) const LONGEST_PAUSE: Span = Span::from_secs(640);
    /// How many jobs' waiting times are compared with as many. From: where three of ten jobs wait
    /// and none would, 32 jobs tell it.
    pub(crate) const SAMPLE: usize = 32;
    /// Waiting times count in steps of this part of the period. From: 5% are what a response time
    /// may be longer by without harm.
    pub(crate) const STEPS: u64 = 20;
    /// The normal deviate of a comparison that counts. From: 3.09 is one in 1,000. With it, two
    /// samples in which many jobs wait alike differ more often, and with this value in 0.9 of 1,000
    /// cases.
    pub(crate) const SURE: f64 = 3.3;
    /// The same of a suspicion: one in 100.
    pub(crate) const SUSPECT: f64 = 2.33;
}

/// Threads that starve, and their probations.
pub(crate) mod starvation {
    use super::Span;

    /// The shortest time of starving that counts.
    pub(crate) const LONG_ENOUGH: Span = Span::from_ms(300);
    /// Bursts count in full for this long.
    pub(crate) const WINDOW: Span = Span::from_ms(1000);
    /// The least number of bursts in that time: a thread that blocks less often has no rhythm to
    /// show.
    pub(crate) const FEWEST_BURSTS: u32 = 6;
    /// The share of time for which a starving thread is ready and does not run.
    pub(crate) const WAITING: f64 = 0.4;
    /// The same while another thread is on probation.
    pub(crate) const WAITING_TOO: f64 = 0.15;
    /// The fewest bursts then.
    pub(crate) const FEWEST_BURSTS_TOO: u32 = 3;
    /// A thread without events is a sleeper below this share of a CPU.
    pub(crate) const AWAKE: f64 = 0.002;
    /// And not starving above this one.
    pub(crate) const FED: f64 = 0.7;
    /// The first time between two looks at its CPU time, each a system call. It doubles each time
    /// that the thread slept.
    pub(crate) const LOOK_EVERY: Span = Span::from_ms(120);
    /// The longest time between two looks.
    pub(crate) const LOOK_RARELY: Span = Span::from_ms(2400);
    /// How long a probation lasts: a player that is behind catches up and then plays a few frames.
    pub(crate) const PROBATION: Span = Span::from_ms(3000);
    /// The period of its reservation, unless the thread's treatment names another.
    pub(crate) const PROBATION_PERIOD: Span = Span::from_ms(20);
    /// The pause after the first probation in vain, and after the first time that a thread lost its
    /// protection because it only computed.
    pub(crate) const FIRST_PAUSE: Span = Span::from_secs(5);
    /// The longest pause between two probations of one thread.
    pub(crate) const LONGEST_PAUSE: Span = Span::from_secs(600);
    /// The longest pause between two probations of threads without a clock. From: with it, they
    /// take a twentieth of one CPU.
    pub(crate) const LONGEST_PAUSE_ALONE: Span = Span::from_secs(60);
    /// The pause before the next attempt if a probation is put off.
    pub(crate) const PUT_OFF: Span = Span::from_ms(500);
}

/// Requests, and what they are served with.
pub(crate) mod requests {
    /// The weight of a thread on probation, relative to others.
    pub(crate) const WEIGHT_ON_PROBATION: f64 = 0.1;
}

/// Pipelines: which threads are watched, and which are stages.
pub(crate) mod pipeline {
    /// A thread that woke its user this number of times is waited for.
    pub(crate) const WAITED_FOR: u32 = 3;
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
    /// Protection is in vain where, twice in a row, the application's threads wait for at least
    /// `WAITS` of the time in all and use less than `BUSY` of the CPUs.
    pub(crate) const WAITS: f64 = 0.5;
    pub(crate) const BUSY: f64 = 0.6;
    /// How long protection counts as being in vain.
    pub(crate) const IN_VAIN: Span = Span::from_secs(5);
    /// The time between two looks at a thread that notified: its boost decays, and another program
    /// may have changed it.
    pub(crate) const LOOK_EVERY: Span = Span::from_ms(100);
    /// How long a thread's share of sleep is remembered after a notification: honest threads notify
    /// now and then.
    pub(crate) const REMEMBERED: Span = Span::from_secs(30);
}
