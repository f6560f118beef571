//! The constants of the loop. "From" is a derivation or a citation.

use onbeat_model::{Boost, Span};

/// When a thread's bursts are analysed.
pub(crate) mod analysis {
    use super::Span;

    /// The number of last periods whose bursts are analysed after a thread went astray.
    pub(crate) const NEWS_PERIODS: u64 = 4;
    /// The fewest new bursts that are worth an analysis.
    pub(crate) const FEWEST: u32 = 6;
    /// The time between two analyses of a young thread.
    pub(crate) const FIRST_PAUSE: Span = Span::from_ms(15);
    /// The longest time between two analyses in vain.
    pub(crate) const LONGEST_PAUSE: Span = Span::from_ms(500);
    /// The most analyses of one turn; further ones wait for the next. From: one of 1,000 bursts
    /// takes 0.4 ms (`experiments/period-bench`), so 16 take a third of `PAUSE`.
    pub(crate) const ANALYSES_PER_TURN: usize = 16;
    /// The number of analyses in vain after which the pauses grow.
    pub(crate) const PATIENCE: u32 = 12;
    /// The time to the first verification.
    pub(crate) const FIRST_VERIFICATION: Span = Span::from_ms(250);
    /// The longest time between two verifications. The tracker notices a change of rate.
    pub(crate) const LONGEST_VERIFICATION: Span = Span::from_secs(64);
    /// The lowest false-alarm rate of one analysis, which every true rhythm passes after a few
    /// beats.
    pub(crate) const LEAST_RATE: f64 = 1e-4;
}

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
    use super::Span;

    /// The least difference, in CPUs, that is worth a system call while the job fits.
    pub(crate) const TRIFLE_CPUS: f64 = 0.001;
    /// The least raise, as a share, that is worth a system call if the thread's own request has not
    /// changed.
    pub(crate) const WORTH_RAISING: f64 = 0.05;
    /// Two server periods that differ by less than one part in this number are the same.
    pub(crate) const SAME_SERVER: u64 = 100;
    /// The weight of a thread on probation, relative to others.
    pub(crate) const WEIGHT_ON_PROBATION: f64 = 0.1;
    /// The runtime that each period of a server gets beyond the job's own: the kernel charges what
    /// it does around a job, and on a busy machine that differs from job to job.
    pub(crate) const MARGIN: Span = Span::from_us(20);
    /// The shortest runtime in each period of a server. A budget is enforced at the scheduler's
    /// tick, and a job that overran a tiny one by a tick would pay for it with tens of periods.
    pub(crate) const SHORTEST_RUNTIME: Span = Span::from_us(30);
    /// The least share of its period for a stage, which has other work, too: a budget is enforced
    /// at the scheduler's tick, and of less than this it would take too many periods to pay for one
    /// that it overran by.
    pub(crate) const LEAST_OF_STAGE: f64 = 0.05;
}

/// Refusals of the actuator, and checks of what is in force.
pub(crate) mod enforcement {
    use super::Span;

    /// The first pause after a refusal. Each further one is twice as long.
    pub(crate) const FIRST_RETRY: Span = Span::from_secs(1);
    /// The longest such pause.
    pub(crate) const LONGEST_RETRY: Span = Span::from_secs(30);
    /// The shares of a reservation to try in turn if the kernel has no room for it. More of them
    /// cost more system calls.
    pub(crate) const STEPS_DOWN: [f64; 4] = [0.85, 0.7, 0.5, 0.3];
    /// The time between two checks of a requested reservation.
    pub(crate) const LOOK_AT_FIXED: Span = Span::from_ms(2000);
    /// The shortest time between two checks whether a thread still has its reservation, each a
    /// system call.
    pub(crate) const CHECKED_EVERY: Span = Span::from_ms(1000);
}

/// Pipelines: which threads are watched, and which are stages.
pub(crate) mod pipeline {
    use super::Span;

    /// The time between two reviews of the paths.
    pub(crate) const EVERY: Span = Span::from_ms(250);
    /// The number of exchanged wakeups from which on a thread is watched.
    pub(crate) const WORTH_WATCHING: f64 = 6.0;
    /// The share of a count that remains a review later. From: 3 wakeups a second sum up to 0.75 /
    /// (1 - 0.875) = 6.
    pub(crate) const KEPT: f64 = 0.875;
    /// A count below this is forgotten. From: one wakeup is remembered for 17 reviews, 4 s.
    pub(crate) const FORGOTTEN: f64 = 0.1;
    /// How long a thread is turned away the first time. Each further time is twice as long.
    pub(crate) const FIRST_TURN: Span = Span::from_secs(15);
    /// The longest such time.
    pub(crate) const LONGEST_TURN: Span = Span::from_secs(8 * 60);
    /// The most threads that are counted and turned away, for each payer and for all. From: 100
    /// bytes each, so 100 KiB at most.
    pub(crate) const KNOWN_EACH: usize = 256;
    pub(crate) const KNOWN_ALL: usize = 1024;
    /// The most threads that are watched at a time and are no stages.
    pub(crate) const WATCHED_EACH: usize = 16;
    pub(crate) const WATCHED_ALL: usize = 64;
    /// A watched thread that is no stage is let go after this time.
    pub(crate) const WATCHED: Span = Span::from_secs(10);
    /// And after this time if its users show no rhythm.
    pub(crate) const WATCHED_AT_MOST: Span = Span::from_secs(60);
    /// The most stages.
    pub(crate) const STAGES_EACH: usize = 32;
    pub(crate) const STAGES_ALL: usize = 128;
    /// A stage that is not sure to be one any more is kept for this time: a player that is behind
    /// for a moment comes back.
    pub(crate) const DOUBT: Span = Span::from_secs(5);
    /// A thread that was asked for may show a rhythm of its own before it is taken for a stage of
    /// another's path.
    pub(crate) const OWN_RHYTHM_FIRST: Span = Span::from_secs(3);
    /// The most paths of a thread that are known.
    pub(crate) const HEADS: usize = 4;
    /// A thread that woke its user this number of times is waited for.
    pub(crate) const WAITED_FOR: u32 = 3;
    /// A stage wakes threads of the path for at least one of this number of jobs.
    pub(crate) const JOBS_PER_WAKEUP: u64 = 4;
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

pub(crate) mod records {
    /// How many ended threads are remembered by their numbers. From: those that a shell waits for
    /// in the time over which its wakers are counted.
    pub(crate) const LEFT_MOST: usize = 256;
    /// The last jobs of a thread that are kept. From: a second of a thread of 64 Hz, and two
    /// kilobytes.
    pub(crate) const JOBS: usize = 64;
    /// The reports of threads that ended that are kept one by one; the others are summed up.
    pub(crate) const ENDED: usize = 1000;
    /// The applications whose sums are kept after their last thread has ended. From: 150 bytes
    /// each, 40 kilobytes.
    pub(crate) const APPLICATIONS: usize = 256;
}
