//! The constants of this crate. "From" is a derivation or a citation.

use onbeat_model::Span;

/// The worth of a missed deadline notification of a thread with a reservation.
pub(crate) mod notification {
    use super::Span;

    /// The raise by one notification for a thread that sleeps all the time, as a fraction of its
    /// budget.
    pub const STEP: f64 = 0.25;
    /// The most that all together add.
    pub const MOST: f64 = 1.0;
    /// The number of jobs without need for it after which a raise is taken back.
    pub const JURY: u32 = 8;
    /// How long a thread is not heard after its first appeal in vain.
    pub const FIRST_SILENCE: Span = Span::from_secs(2);
    /// And at most.
    pub const LONGEST_SILENCE: Span = Span::from_secs(3600);
    /// In which time the raise of a thread that sleeps all the time falls to half.
    pub(crate) const HALF_LIFE: Span = Span::from_secs(1);
    /// How much the last stretch counts in the block ratio.
    pub(crate) const WEIGHT: f64 = 0.125;
    /// How far before its deadline a job may be said to be late, as a share of the period: the
    /// deadline is a guess.
    pub(crate) const WINDOW: f64 = 0.25;
    /// And how many periods after it.
    pub(crate) const LATEST: u64 = 8;
    /// A thread that sleeps for less of its time computes without an end: what it says of deadlines
    /// is not heard.
    pub(crate) const SLEEPLESS: f64 = 0.02;
    /// A raise below this share of the budget is over.
    pub(crate) const NOTHING: f64 = 0.01;
}

/// The worth of one of a thread without a reservation.
pub(crate) mod ordinary {
    use super::Span;

    /// The number of nice levels for a thread that always sleeps. From: with 5, no block ratio
    /// gives more of a CPU than none (the head of `notification/ordinary`).
    pub const MOST_LEVELS: f64 = 5.0;
    /// The number of levels for each CPU that all boosted threads share.
    pub const LEVELS_OF_A_CPU: f64 = 5.0;
    /// The slice of a boosted thread: it need not wait for the end of a longer one. From: three
    /// times the shortest that the kernel takes (100 us), and a tenth of its usual one
    /// (`sched_base_slice_ns`, 3 ms).
    pub const SLICE: Span = Span::from_us(300);
    /// The raise by one notification, in levels, for a thread that always sleeps. From:
    /// Banachowski, Wu and Brandt, section 3.1.1, one tick for each.
    pub(crate) const STEP: f64 = 1.0;
    /// In which time the boost of a thread that always sleeps falls to half.
    pub(crate) const HALF_LIFE: Span = Span::from_secs(30);
    /// How far back the block ratio looks: an exponential average over time.
    pub(crate) const MEMORY: Span = Span::from_ms(500);
}

/// Raises after a budget ran out.
pub(crate) mod catch_up {
    /// The number of jobs in a row that were interrupted without need, after which a further
    /// interruption is no reason for a raise.
    pub(crate) const HARMLESS_MOST: u32 = 3;
    /// The number of jobs without a further need after which a raise has done what it could, even
    /// if they are late: then it is not the budget that makes them so.
    pub(crate) const UNUSED_MOST: u32 = 8;
    /// The number of times that a job may run out of budget before it is no longer the one that was
    /// planned for: it gets as much again, and again, or it would never end.
    pub(crate) const ROUNDS_MOST: u32 = 4;
    /// The least that is doubled, as a share of a period. A thread that has had nothing to do for a
    /// while has next to no budget, and four times that is no more: where threads of a pool take
    /// turns, as an encoder's, the work that comes to it is another one's, and would take tens of
    /// periods.
    pub(crate) const LEAST_DOUBLED: f64 = 1.0 / 16.0;
}

/// The excess of jobs over the percentile.
pub(crate) mod excess {
    /// From how many jobs on their excesses are known well enough to replace the percentile, which
    /// then only has to notice a lasting rise. From: of 100 jobs, one is the share that may overrun
    /// (`Parameters::overruns`).
    pub(crate) const KNOWN: u64 = 100;
    /// For how many jobs an excess is remembered.
    pub(crate) const WINDOW: u64 = 1024;
    /// The multiple of the ranks asked for below which forgetting gains nothing.
    pub(crate) const KEEP_RANKS: usize = 8;
}

/// The predictor `pattern`.
pub(crate) mod pattern {
    /// The longest group that is looked for.
    pub(crate) const LONGEST: usize = 64;
    /// How many of the last jobs at its place a job is judged by.
    pub(crate) const PLACES: usize = 6;
    /// How much the last job counts in how well a length fits. From: an average over 96 jobs, one
    /// and a half of the longest groups; with it, the best of 64 lengths that mean nothing has 0.8
    /// of its neighbours' difference.
    pub(crate) const WEIGHT: f64 = 1.0 / 96.0;
    /// A length fits if its jobs differ by no more than this part of what neighbours differ by. The
    /// best of 64 lengths that mean nothing has 0.8.
    pub(crate) const FITS: f64 = 0.7;
    /// A shorter length that fits nearly as well is the group, and the longer one several of it.
    pub(crate) const AS_WELL: f64 = 1.1;
    /// The number of jobs that say how hard the scene is.
    pub(crate) const SCENE: usize = 4;
}

/// The predictor `percentile`.
pub(crate) mod percentile {
    /// The percentile that notices a lasting rise: a quarter of the window is no chance.
    pub(crate) const MOST: f64 = 0.75;
    /// The first jobs of a rhythm are no measure of the later ones: programs start slowly, with
    /// cold caches and work to be done once. This number of jobs leaves no excess behind. From:
    /// twice the window of the percentile (`Parameters::window`), so that it holds none of them.
    pub const START_UP_JOBS: u32 = 32;
    /// How many jobs of a new rate must be known before the runtime of the former one is let go.
    /// From: a quarter of the window, from which on `generosity` adds a quarter at most.
    pub(crate) const BRIDGE_JOBS: u32 = 4;
}

/// The predictor `statistical`.
pub(crate) mod statistical {
    /// r. From: a group is then 2% of the range of demands, and the budget that much too large at
    /// most.
    pub(crate) const GROUPS: usize = 50;
    /// A window that is filled this far says enough of the distribution. From: GRACE-OS, section
    /// 4.2: the first 50 jobs.
    pub(crate) const KNOWN: usize = 50;
}

/// The share of misses that GRACE-OS's plans are allowed.
pub(crate) mod misses {
    /// The part of it that is aimed at: a share is met on average, and rather not exceeded.
    pub(crate) const AIM: f64 = 0.9;
}

/// How much of a miss is allowed at present.
pub(crate) mod allowance {
    /// How much a miss counts: 250 misses in a row lead from `MOST` to nothing.
    pub(crate) const STEP: f64 = 0.002;
    /// No budget is for less than half of the jobs.
    pub(crate) const MOST: f64 = 0.5;
}

/// The forecast of the next job's demand.
pub(crate) mod forecast {
    /// The level that a season's change is seen by: the mean of this number of jobs.
    pub(crate) const LEVEL: usize = 3;
    /// The lengths of the means among the rules. More of them cost more for each job. From: doubled
    /// each time up to a group of pictures; a mean between two of them is the mixture's.
    pub(crate) const MEANS: [usize; 5] = [1, 2, 4, 8, 16];
    /// The longest group of jobs that is found.
    pub(crate) const LONGEST: usize = 24;
    /// How much a new error counts.
    pub(crate) const WEIGHT: f64 = 0.03;
    /// How much less a rule counts whose error is greater than the least one, by that in shares of
    /// the least.
    pub(crate) const SHARPNESS: f64 = 4.0;
    /// No error is less, so that a rule that has not erred yet is not beyond comparison. From: a
    /// thousandth of a job is less than what one interrupt adds to it.
    pub(crate) const LEAST_ERROR: f64 = 1e-3;
}

/// Schedules by forecast and distribution.
pub(crate) mod joint {
    /// The number of parts of equal probability of a distribution: with groups of equal width, one
    /// job that demands much would leave all others in the first.
    pub(crate) const PIECES: usize = 25;
    /// The part of the jobs that overran which may end late.
    pub(crate) const SERVED_OVERRUNS: f64 = 0.5;
}

/// The margin of GRACE-OS's budgets.
pub(crate) mod margin {
    /// How much an overrun stretches. From: of 0.02, 0.05, 0.1, 0.2, 0.3 and 0.5 the least with
    /// which no more than 5% overran of each of the demands in `experiments/predictors/demands`,
    /// whole and every fourth job.
    pub(crate) const STEP: f64 = 0.1;
    /// The most that a budget is stretched by.
    pub(crate) const MOST: f64 = 20.0;
}

/// The supervisor's level.
pub(crate) mod level {
    /// The lightest weight that counts; keeps the level finite. From: beside a thread of weight 1,
    /// it is 1 us of a CPU in a second, less than the shortest runtime that the kernel takes (1,024
    /// ns).
    pub(crate) const LEAST_WEIGHT: f64 = 1e-6;
}

/// The supervisor's limits if nothing else is said.
pub(crate) mod limits {
    /// The share of all CPUs that is granted. From: the kernel admits 95%, of which its fair server
    /// has 5% and reservations that are being changed are counted twice for a while.
    pub(crate) const TOTAL: f64 = 0.85;
    /// The share of one CPU that one task may get. From: `TOTAL`, on a machine of one CPU.
    pub(crate) const PER_TASK: f64 = TOTAL;
}
