//! Every constant of this crate: its value, what raising it costs, and where the value comes from.
//!
//! "Test" names a test that fails when the value is doubled or halved; "From" is a derivation or a
//! citation.

use onbeat_model::Span;

/// The worth of a missed deadline notification of a thread with a reservation.
pub(crate) mod notification {
    use super::Span;

    /// The raise by one notification for a thread that sleeps all the time, as a fraction of its
    /// budget. Raised, a thread that cries wolf has more of the CPU until it is found out; lowered,
    /// one that needs more misses more jobs first. Test:
    /// `a_thread_that_needs_more_gets_it_at_once_and_loses_it_when_it_needs_it_no_longer`.
    pub const STEP: f64 = 0.25;
    /// The most that all together add. Raised, one thread takes more from the others. Test:
    /// `all_raises_together_double_a_budget_at_most`.
    pub const MOST: f64 = 1.0;
    /// The number of jobs without need for it after which a raise is taken back. Raised, a raise
    /// without need lasts for longer. Test:
    /// `after_eight_jobs_without_need_a_thread_is_not_heard_for_two_seconds_and_later_an_hour`.
    pub const JURY: u32 = 8;
    /// How long a thread is not heard after its first appeal in vain. Raised, a thread that was
    /// wrong once waits for longer when it is right. Test:
    /// `after_eight_jobs_without_need_a_thread_is_not_heard_for_two_seconds_and_later_an_hour`.
    pub const FIRST_SILENCE: Span = Span::from_secs(2);
    /// And at most. Raised, a thread that was wrong for long is heard later again; lowered, it has
    /// its share more often. Test:
    /// `after_eight_jobs_without_need_a_thread_is_not_heard_for_two_seconds_and_later_an_hour`.
    pub const LONGEST_SILENCE: Span = Span::from_secs(3600);
    /// In which time the raise of a thread that sleeps all the time falls to half. Raised, a raise
    /// lasts for longer than its need. Test:
    /// `a_raise_decays_the_faster_the_less_the_thread_sleeps`.
    pub(crate) const HALF_LIFE: Span = Span::from_secs(1);
    /// How much the last stretch counts in the block ratio. Raised, one stretch of computing weighs
    /// more than a thread's habit. Test:
    /// `one_sleep_counts_for_an_eighth_of_what_a_thread_always_does`.
    pub(crate) const WEIGHT: f64 = 0.125;
    /// How far before its deadline a job may be said to be late, as a share of the period: the
    /// deadline is a guess. Raised, an earlier one is believed. Test:
    /// `what_cannot_be_a_miss_and_the_same_miss_again_are_not_believed`.
    pub(crate) const WINDOW: f64 = 0.25;
    /// And how many periods after it. Raised, an old miss still earns a raise. Test:
    /// `what_cannot_be_a_miss_and_the_same_miss_again_are_not_believed`.
    pub(crate) const LATEST: u64 = 8;
    /// A thread that sleeps for less of its time computes without an end: what it says of deadlines
    /// is not heard. Raised, a thread that computes much and has deadlines is not heard. Test:
    /// `a_thread_that_sleeps_for_less_than_a_fiftieth_is_not_credible`.
    pub(crate) const SLEEPLESS: f64 = 0.02;
    /// A raise below this share of the budget is over. Raised, a raise ends sooner; lowered, it
    /// costs system calls to no effect. Test: `a_raise_of_less_than_a_hundredth_is_none`.
    pub(crate) const NOTHING: f64 = 0.01;
}

/// The worth of one of a thread without a reservation.
pub(crate) mod ordinary {
    use super::Span;

    /// The number of nice levels for a thread that always sleeps. Raised, a thread gains more by
    /// them than it gives up by sleeping. From: with 5, no block ratio gives more of a CPU than
    /// none (the head of `notification/ordinary`).
    pub const MOST_LEVELS: f64 = 5.0;
    /// The number of levels for each CPU that all boosted threads share. Raised, ordinary threads
    /// have less beside several boosted ones. Test:
    /// `many_cheaters_together_share_what_one_could_have`.
    pub const LEVELS_OF_A_CPU: f64 = 5.0;
    /// The slice of a boosted thread: it need not wait for the end of a longer one. Raised, it
    /// waits for longer; lowered, each switch costs others more. From: three times the shortest
    /// that the kernel takes (100 us), and a tenth of its usual one (`sched_base_slice_ns`, 3 ms).
    pub const SLICE: Span = Span::from_us(300);
    /// The raise by one notification, in levels, for a thread that always sleeps. Raised, fewer
    /// notifications are enough for all levels. From: Banachowski, Wu and Brandt, section 3.1.1,
    /// one tick for each.
    pub(crate) const STEP: f64 = 1.0;
    /// In which time the boost of a thread that always sleeps falls to half. Raised, a boost
    /// outlives its need. Test: `a_boost_ends_by_itself_and_sooner_for_who_sleeps_less`.
    pub(crate) const HALF_LIFE: Span = Span::from_secs(30);
    /// How far back the block ratio looks: an exponential average over time. Raised, a thread that
    /// begins to compute keeps its boost for longer. Test:
    /// `a_boost_is_there_again_once_a_long_job_is_over`.
    pub(crate) const MEMORY: Span = Span::from_ms(500);
}

/// Raises after a budget ran out.
pub(crate) mod catch_up {
    /// The number of jobs in a row that were interrupted without need, after which a further
    /// interruption is no reason for a raise. Raised, budgets stay too large for longer. Test:
    /// `interruptions_of_jobs_that_end_in_time_are_no_reason_for_a_raise_again_and_again`.
    pub(crate) const HARMLESS_MOST: u32 = 3;
    /// The number of jobs without a further need after which a raise has done what it could, even
    /// if they are late: then it is not the budget that makes them so. Raised, a raise without use
    /// lasts for longer. Test: `a_raise_that_is_not_what_late_jobs_lack_is_given_up`.
    pub(crate) const UNUSED_MOST: u32 = 8;
    /// The number of times that a job may run out of budget before it is no longer the one that was
    /// planned for: it gets as much again, and again, or it would never end. Raised, a job that
    /// never ends is late for longer. Test:
    /// `a_job_that_runs_out_four_times_is_another_than_was_planned_for`.
    pub(crate) const ROUNDS_MOST: u32 = 4;
    /// The least that is doubled, as a share of a period. A thread that has had nothing to do for a
    /// while has next to no budget, and four times that is no more: where threads of a pool take
    /// turns, as an encoder's, the work that comes to it is another one's, and would take tens of
    /// periods. Raised, an idle thread that wakes takes more from others. Test:
    /// `a_sixteenth_of_the_period_is_the_least_that_is_doubled`.
    pub(crate) const LEAST_DOUBLED: f64 = 1.0 / 16.0;
}

/// The excess of jobs over the percentile.
pub(crate) mod excess {
    /// From how many jobs on their excesses are known well enough to replace the percentile, which
    /// then only has to notice a lasting rise. Raised, the percentile pays for one long job for
    /// longer. From: of 100 jobs, one is the share that may overrun (`Parameters::overruns`).
    pub(crate) const KNOWN: u64 = 100;
    /// For how many jobs an excess is remembered. Raised, one long job is paid for for longer;
    /// lowered, rare long jobs are forgotten before the next. Test:
    /// `an_excess_is_remembered_for_1024_jobs`.
    pub(crate) const WINDOW: u64 = 1024;
    /// The multiple of the ranks asked for below which forgetting gains nothing. Raised, more
    /// memory for each thread. Test: `what_can_no_longer_be_the_answer_is_forgotten`.
    pub(crate) const KEEP_RANKS: usize = 8;
}

/// The predictor `pattern`.
pub(crate) mod pattern {
    /// The longest group that is looked for. Raised, each job costs more, and more lengths fit by
    /// chance. Test: `a_group_has_at_most_64_jobs_and_each_place_the_mean_of_its_last_six`.
    pub(crate) const LONGEST: usize = 64;
    /// How many of the last jobs at its place a job is judged by. Raised, a change of scene is
    /// followed later. Test: `a_group_has_at_most_64_jobs_and_each_place_the_mean_of_its_last_six`.
    pub(crate) const PLACES: usize = 6;
    /// How much the last job counts in how well a length fits. Raised, a length is found sooner and
    /// left sooner. From: an average over 96 jobs, one and a half of the longest groups; with it,
    /// the best of 64 lengths that mean nothing has 0.8 of its neighbours' difference.
    pub(crate) const WEIGHT: f64 = 1.0 / 96.0;
    /// A length fits if its jobs differ by no more than this part of what neighbours differ by. The
    /// best of 64 lengths that mean nothing has 0.8. Raised, chance is a group. Test:
    /// `jobs_that_do_not_repeat_have_no_group`.
    pub(crate) const FITS: f64 = 0.7;
    /// A shorter length that fits nearly as well is the group, and the longer one several of it.
    /// Raised, a part of the group is taken for it. Test:
    /// `a_shorter_length_that_fits_clearly_less_is_not_the_group`.
    pub(crate) const AS_WELL: f64 = 1.1;
    /// The number of jobs that say how hard the scene is. Raised, a change of scene is followed
    /// later. Test: `four_jobs_say_how_hard_the_scene_is`.
    pub(crate) const SCENE: usize = 4;
}

/// The predictor `percentile`.
pub(crate) mod percentile {
    /// The percentile that notices a lasting rise: a quarter of the window is no chance. Raised,
    /// budgets follow a rise sooner, and chance with it. Test:
    /// `the_default_keeps_table_one_in_time_for_at_most_a_quarter_more_than_it_uses`.
    pub(crate) const MOST: f64 = 0.75;
    /// The first jobs of a rhythm are no measure of the later ones: programs start slowly, with
    /// cold caches and work to be done once. This number of jobs leaves no excess behind. Raised,
    /// budgets are those of the start for longer. From: twice the window of the percentile
    /// (`Parameters::window`), so that it holds none of them.
    pub const START_UP_JOBS: u32 = 32;
    /// How many jobs of a new rate must be known before the runtime of the former one is let go.
    /// Raised, a thread that becomes slower holds too much for longer. From: a quarter of the
    /// window, from which on `generosity` adds a quarter at most.
    pub(crate) const BRIDGE_JOBS: u32 = 4;
}

/// The predictor `statistical`.
pub(crate) mod statistical {
    /// r. Raised, each plan costs more. From: a group is then 2% of the range of demands, and the
    /// budget that much too large at most.
    pub(crate) const GROUPS: usize = 50;
    /// A window that is filled this far says enough of the distribution. Raised, the first budgets
    /// are generous for longer. From: GRACE-OS, section 4.2: the first 50 jobs.
    pub(crate) const KNOWN: usize = 50;
}

/// The share of misses that GRACE-OS's plans are allowed.
pub(crate) mod misses {
    /// The part of it that is aimed at: a share is met on average, and rather not exceeded. Raised,
    /// more jobs miss. Test: `the_share_of_misses_is_bounded_though_demands_never_stop_growing`.
    pub(crate) const AIM: f64 = 0.9;
}

/// How much of a miss is allowed at present.
pub(crate) mod allowance {
    /// How much a miss counts: 250 misses in a row lead from `MOST` to nothing. Raised, the share
    /// that is allowed swings more. Test:
    /// `who_may_miss_nothing_gets_the_worst_case_and_keeps_it`.
    pub(crate) const STEP: f64 = 0.002;
    /// No budget is for less than half of the jobs. Raised, a budget may be for fewer jobs. Test:
    /// `who_may_miss_nothing_gets_the_worst_case_and_keeps_it`.
    pub(crate) const MOST: f64 = 0.5;
}

/// The forecast of the next job's demand.
pub(crate) mod forecast {
    /// The level that a season's change is seen by: the mean of this number of jobs. Raised, a
    /// change of level is seen later. Test: `the_jobs_of_a_film_are_foretold_to_eight_percent`.
    pub(crate) const LEVEL: usize = 3;
    /// The lengths of the means among the rules. More of them cost more for each job. From: doubled
    /// each time up to a group of pictures; a mean between two of them is the mixture's.
    pub(crate) const MEANS: [usize; 5] = [1, 2, 4, 8, 16];
    /// The longest group of jobs that is found. Raised, each job costs more. Test:
    /// `the_jobs_of_a_film_are_foretold_to_eight_percent`.
    pub(crate) const LONGEST: usize = 24;
    /// How much a new error counts. Raised, one bad forecast of a good rule counts more. Test:
    /// `the_jobs_of_a_film_are_foretold_to_eight_percent`.
    pub(crate) const WEIGHT: f64 = 0.03;
    /// How much less a rule counts whose error is greater than the least one, by that in shares of
    /// the least. Raised, the best rule counts alone. Test:
    /// `the_jobs_of_a_film_are_foretold_to_eight_percent`.
    pub(crate) const SHARPNESS: f64 = 4.0;
    /// No error is less, so that a rule that has not erred yet is not beyond comparison. Raised, an
    /// exact rule counts as much as one that is nearly so. From: a thousandth of a job is less than
    /// what one interrupt adds to it.
    pub(crate) const LEAST_ERROR: f64 = 1e-3;
}

/// Schedules by forecast and distribution.
pub(crate) mod joint {
    /// The number of parts of equal probability of a distribution: with groups of equal width, one
    /// job that demands much would leave all others in the first. Raised, each plan costs more.
    /// Test: `a_distribution_has_25_parts`.
    pub(crate) const PIECES: usize = 25;
    /// The part of the jobs that overran which may end late. Raised, more of them do; lowered, the
    /// speed is higher meanwhile. Test: `of_the_jobs_beyond_their_budget_half_are_to_end_in_time`.
    pub(crate) const SERVED_OVERRUNS: f64 = 0.5;
}

/// The margin of GRACE-OS's budgets.
pub(crate) mod margin {
    /// How much an overrun stretches. Raised, budgets swing more. From: of 0.02, 0.05, 0.1, 0.2,
    /// 0.3 and 0.5 the least with which no more than 5% overran of each of the demands in
    /// `experiments/predictors/demands`, whole and every fourth job.
    pub(crate) const STEP: f64 = 0.1;
    /// The most that a budget is stretched by. Raised, one overrun among small jobs plans for work
    /// that never comes. Test: `no_margin_is_more_than_twentyfold`.
    pub(crate) const MOST: f64 = 20.0;
}

/// The supervisor's level.
pub(crate) mod level {
    /// The lightest weight that counts; keeps the level finite. Raised, weights below it count
    /// alike. From: beside a thread of weight 1, it is 1 us of a CPU in a second, less than the
    /// shortest runtime that the kernel takes (1,024 ns).
    pub(crate) const LEAST_WEIGHT: f64 = 1e-6;
}

/// The supervisor's limits if nothing else is said.
pub(crate) mod limits {
    /// The share of all CPUs that is granted. Raised, ordinary tasks have less, and the kernel may
    /// refuse. From: the kernel admits 95%, of which its fair server has 5% and reservations that
    /// are being changed are counted twice for a while.
    pub(crate) const TOTAL: f64 = 0.85;
    /// The share of one CPU that one task may get. Raised, ordinary tasks of its CPU have less.
    /// From: `TOTAL`, on a machine of one CPU.
    pub(crate) const PER_TASK: f64 = TOTAL;
}
