//! Every constant of the loop: its value, what raising it costs, and where the value comes from.
//!
//! "Test" names a test that fails when the value is doubled or halved; "From" is a derivation or a
//! citation. A constant that only lays out data (the parts of a histogram, bits of a word) is where
//! it is used.

use onbeat_model::{Boost, Span};

/// When a thread's bursts are analysed.
pub(crate) mod analysis {
    use super::Span;

    /// The number of last periods whose bursts are analysed after a thread went astray. Raised,
    /// bursts of the former rhythm blur the new one for longer. Test:
    /// `the_bursts_of_four_periods_are_news`.
    pub(crate) const NEWS_PERIODS: u64 = 4;
    /// The fewest new bursts that are worth an analysis. Raised, a lock comes later. Test:
    /// `a_rhythm_is_verified_at_growing_distances`.
    pub(crate) const FEWEST: u32 = 6;
    /// The time between two analyses of a young thread. Raised, a lock comes later; lowered, each
    /// analysis costs as much as hundreds of events. Test:
    /// `a_young_thread_is_analysed_at_six_bursts_and_then_at_almost_each`.
    pub(crate) const FIRST_PAUSE: Span = Span::from_ms(15);
    /// The longest time between two analyses in vain. Raised, a late rhythm is found later. Test:
    /// `a_thread_without_rhythm_is_analysed_at_most_twice_a_second_in_the_end`.
    pub(crate) const LONGEST_PAUSE: Span = Span::from_ms(500);
    /// The most analyses of one turn; further ones wait for the next. Raised, other events wait for
    /// longer. From: one of 1,000 bursts takes 0.4 ms (`experiments/period-bench`), so 16 take a
    /// third of `PAUSE`.
    pub(crate) const ANALYSES_PER_TURN: usize = 16;
    /// The number of analyses in vain after which the pauses grow. Raised, threads without a rhythm
    /// cost more. Test: `after_a_dozen_analyses_in_vain_they_become_rare`.
    pub(crate) const PATIENCE: u32 = 12;
    /// The time to the first verification. Raised, a wrong rhythm is kept for longer. Test:
    /// `a_rhythm_is_verified_at_growing_distances`.
    pub(crate) const FIRST_VERIFICATION: Span = Span::from_ms(250);
    /// The longest time between two verifications. Raised, the same; lowered, the verifications of
    /// hundreds of threads cost more than all tracking. The tracker notices a change of rate. Test:
    /// `a_rhythm_is_verified_every_64_seconds_in_the_end`.
    pub(crate) const LONGEST_VERIFICATION: Span = Span::from_secs(64);
    /// The lowest false-alarm rate of one analysis, which every true rhythm passes after a few
    /// beats. Raised, more chance rhythms are found by threads that are analysed often. Test:
    /// `the_false_alarm_rate_of_one_analysis_falls_to_a_ten_thousandth`.
    pub(crate) const LEAST_RATE: f64 = 1e-4;
}

/// Whether a clock is behind a period.
pub(crate) mod clock {
    use super::Span;

    /// A clock's wakeup counts in one period of this many: a thread that is late is awake when its
    /// timer expires, and half of a starved player's jobs are. Raised, chance wakeups make a clock.
    /// Test: `a_thread_is_reserved_for_if_a_clock_is_behind_who_wakes_it`.
    pub(crate) const CLOCK_PERIODS: u64 = 2;
    /// The same for wakeups by another thread: the workers of a pool take turns at waking it. Test:
    /// `a_thread_that_wakes_another_in_one_period_of_four_is_behind_it`.
    pub(crate) const WAKER_PERIODS: u64 = 4;
    /// Over how many periods wakeups are counted. Raised, those of a time when the program starved
    /// count. Test: `a_paused_film_is_given_back_and_is_reserved_for_soon_after_it_goes_on`.
    pub(crate) const PERIODS: u64 = 16;
    /// The most threads that a chain of wakers is followed through. Raised, an analysis of a large
    /// pool costs more. From: the longest chain in the recordings has five; 64 leaves room for
    /// pools whose workers all wake each other.
    pub(crate) const THREADS: usize = 64;
    /// A process has a clock if it had this many clock wakeups in each of the last two quarters of
    /// a second. Raised, a starved player has none. From: a transcoder beside hogs hears one in
    /// half a second at most, once it has started; a starved player ten. Test:
    /// `a_thread_that_a_process_on_probation_begins_is_on_probation_from_its_first_instruction`.
    pub(crate) const IN_EACH_QUARTER: u32 = 2;
    /// The time over which such wakeups are counted, and between two reviews of protection. Raised,
    /// both answer later. Test:
    /// `a_thread_that_a_process_on_probation_begins_is_on_probation_from_its_first_instruction`.
    pub(crate) const QUARTER: Span = Span::from_ms(250);
}

/// A thread whose rhythm is known.
pub(crate) mod lock {
    use super::Span;

    /// A period that is off by one part in this number was a guess. Raised, the tracker is set anew
    /// for a smaller error. Test: `a_guess_that_is_off_by_a_hundredth_is_put_right`.
    pub(crate) const GUESS: u64 = 100;
    /// Two periods that differ by less than one part in this number are the same rate. Raised, a
    /// small change of rate makes the demand be forgotten. Test:
    /// `periods_within_a_twentieth_are_the_same_rate`.
    pub(crate) const SAME_RATE: u64 = 20;
    /// Only where the longest of the last jobs is this many times the usual one does a budget not
    /// learn what is needed. Raised, a worker with uneven jobs keeps the budget that makes it late.
    /// From: frames of one film differ by 2 to 3 times; a worker's that is not needed in most
    /// periods by 100 times and more. Test:
    /// `a_thread_that_its_own_budget_makes_late_goes_without_for_a_while_and_longer_each_time`.
    pub(crate) const UNEVEN: u64 = 4;
    /// A thread that has not blocked for this many periods computes all the time. Raised, a liar
    /// keeps its reservation for longer (`onbeat-sim`, `liars_before_the_loop`); lowered, a thread
    /// that catches up loses it. Test:
    /// `a_thread_may_compute_for_ten_periods_and_be_silent_for_twelve`.
    pub(crate) const LONGEST_JOB: u64 = 10;
    /// The same as a time, for short periods. Test:
    /// `a_thread_may_compute_for_ten_periods_and_be_silent_for_twelve`.
    pub(crate) const LONGEST_JOB_AT_LEAST: Span = Span::from_ms(400);
    /// The number of periods that a thread may be off its beat, or without an event. Raised, an
    /// idle reservation is kept for longer; lowered, a player that stumbles loses it. Test:
    /// `a_thread_may_compute_for_ten_periods_and_be_silent_for_twelve`.
    pub(crate) const SILENT_PERIODS: u64 = 12;
    /// The same as a time, for short periods. Test:
    /// `a_thread_may_compute_for_ten_periods_and_be_silent_for_twelve`.
    pub(crate) const SILENT_AT_LEAST: Span = Span::from_ms(1500);
    /// The number of analyses in a row that must disagree with a verified rhythm. Raised, a wrong
    /// rhythm is kept for longer; lowered, one bad window ends a right one. Test:
    /// `three_analyses_in_a_row_end_a_verified_rhythm`.
    pub(crate) const REJECTIONS: u32 = 3;
    /// The most analyses that must agree after a rhythm that was a chance. Raised, such a thread is
    /// locked later. Test: `after_chances_a_rhythm_must_be_found_five_times_at_most`.
    pub(crate) const NEEDED_MOST: u32 = 4;
}

/// Reservations that do harm.
pub(crate) mod harm {
    use super::Span;

    /// A predictor with fewer jobs is still learning. Raised, a budget that makes its thread late
    /// is kept for longer. From: N in LFS++, section 5.3.
    pub(crate) const LEARNING: u32 = 16;
    /// The most late jobs of the last 64 that are chance. Raised, the same. From: one job in a
    /// hundred is to overrun; more than four of 64 come of that in one case of 500 (binomial
    /// distribution).
    pub(crate) const LATE_MOST: u32 = 4;
    /// The first pause of a thread whose reservation did it harm. Each further one is twice as
    /// long. Raised, it lacks a reservation for longer when its jobs have become even. Test:
    /// `a_thread_that_stands_down_again_and_again_does_so_for_ten_minutes`.
    pub(crate) const PAUSE: Span = Span::from_secs(20);
    /// The longest such pause. Test:
    /// `a_thread_that_stands_down_again_and_again_does_so_for_ten_minutes`.
    pub(crate) const LONGEST_PAUSE: Span = Span::from_secs(640);
    /// How many jobs' waiting times are compared with as many. Raised, harm is noticed later, and a
    /// trial lasts longer; lowered, harm to few of the jobs is not noticed. From: where three of
    /// ten jobs wait and none would, 32 jobs tell it.
    pub(crate) const SAMPLE: usize = 32;
    /// Waiting times count in steps of this part of the period. Raised, a difference without harm
    /// ends a reservation. From: 5% are what a response time may be longer by without harm.
    pub(crate) const STEPS: u64 = 20;
    /// The normal deviate of a comparison that counts. From: 3.09 is one in 1,000. With it, two
    /// samples in which many jobs wait alike differ more often, and with this value in 0.9 of 1,000
    /// cases. Test: `jobs_that_wait_alike_seem_to_differ_in_one_case_of_a_thousand`.
    pub(crate) const SURE: f64 = 3.3;
    /// The same of a suspicion: one in 100. Raised, a thread of which few jobs were heard before
    /// its reservation is not tried; lowered, trials are more frequent. Test:
    /// `a_thread_that_waits_longer_with_its_reservation_goes_without_and_tries_ever_more_rarely`.
    pub(crate) const SUSPECT: f64 = 2.33;
}

/// Threads that starve, and their probations.
pub(crate) mod starvation {
    use super::Span;

    /// The shortest time of starving that counts. Raised, a starved player waits longer for its
    /// probation; lowered, a short squeeze counts. Test:
    /// `a_starved_thread_is_given_a_trial_and_is_kept_if_it_shows_a_rhythm_then`.
    pub(crate) const LONG_ENOUGH: Span = Span::from_ms(300);
    /// Bursts count in full for this long. Raised, a thread is thought to starve for longer. Test:
    /// `starving_is_told_over_half_a_second_to_a_second`.
    pub(crate) const WINDOW: Span = Span::from_ms(1000);
    /// The least number of bursts in that time: a thread that blocks less often has no rhythm to
    /// show. Raised, slow threads get no probation. Test:
    /// `a_starved_thread_is_given_a_trial_and_is_kept_if_it_shows_a_rhythm_then`.
    pub(crate) const FEWEST_BURSTS: u32 = 6;
    /// The share of time for which a starving thread is ready and does not run. Raised, a player
    /// that is only somewhat late gets no probation. Test: `probations_in_vain_become_rare`.
    pub(crate) const WAITING: f64 = 0.4;
    /// The same while another thread is on probation. Lower, because of two threads that work for
    /// each other one seems to sleep while it waits for the other. Test:
    /// `who_starves_a_little_beside_a_starving_thread_joins_it_on_probation`.
    pub(crate) const WAITING_TOO: f64 = 0.15;
    /// The fewest bursts then. Test: `a_thread_joins_a_probation_after_three_bursts`.
    pub(crate) const FEWEST_BURSTS_TOO: u32 = 3;
    /// A thread without events is a sleeper below this share of a CPU. Raised, a thread that hardly
    /// gets to run is taken for a sleeper. Test:
    /// `a_thread_that_runs_for_a_five_hundredth_of_the_time_is_awake`.
    pub(crate) const AWAKE: f64 = 0.002;
    /// And not starving above this one. Raised, a hog with a CPU of its own gets probations. Test:
    /// `neither_a_sleeper_nor_a_hog_with_a_cpu_of_its_own_starves`.
    pub(crate) const FED: f64 = 0.7;
    /// The first time between two looks at its CPU time, each a system call. It doubles each time
    /// that the thread slept. Raised, starving is noticed later. Test:
    /// `a_thread_without_events_is_looked_at_after_120_ms`.
    pub(crate) const LOOK_EVERY: Span = Span::from_ms(120);
    /// The longest time between two looks. Test: `a_sleeper_is_looked_at_ever_more_rarely`.
    pub(crate) const LOOK_RARELY: Span = Span::from_ms(2400);
    /// How long a probation lasts: a player that is behind catches up and then plays a few frames.
    /// Raised, a batch program gets more CPU time. Test:
    /// `starving_threads_without_a_clock_are_tried_one_at_a_time_and_ever_more_rarely`.
    pub(crate) const PROBATION: Span = Span::from_ms(3000);
    /// The period of its reservation, unless the thread's treatment names another. Raised, a
    /// starved thread that blocks often waits longer between two of its jobs. Test:
    /// `a_starved_thread_of_which_a_period_is_expected_has_that_period_on_probation`.
    pub(crate) const PROBATION_PERIOD: Span = Span::from_ms(20);
    /// The pause after the first probation in vain, and after the first time that a thread lost its
    /// protection because it only computed. Raised, a thread that shows its rhythm later waits.
    /// Test:
    /// `a_starved_thread_that_shows_no_rhythm_on_probation_is_given_back_and_left_alone_for_long`.
    pub(crate) const FIRST_PAUSE: Span = Span::from_secs(5);
    /// The longest pause between two probations of one thread. Raised, the same. Test:
    /// `a_thread_that_starves_all_day_is_tried_every_ten_minutes_in_the_end`.
    pub(crate) const LONGEST_PAUSE: Span = Span::from_secs(600);
    /// The longest pause between two probations of threads without a clock. From: with it, they
    /// take a twentieth of one CPU.
    pub(crate) const LONGEST_PAUSE_ALONE: Span = Span::from_secs(60);
    /// The pause before the next attempt if a probation is put off. Raised, it begins later. Test:
    /// `starving_threads_of_a_process_with_a_clock_are_tried_together`.
    pub(crate) const PUT_OFF: Span = Span::from_ms(500);
}

/// Requests, and what they are served with.
pub(crate) mod requests {
    use super::Span;

    /// The least difference, in CPUs, that is worth a system call while the job fits. Raised, more
    /// is reserved than needed. Test: `a_thousandth_of_a_cpu_less_is_a_trifle_and_more_is_not`.
    pub(crate) const TRIFLE_CPUS: f64 = 0.001;
    /// The least raise, as a share, that is worth a system call if the thread's own request has not
    /// changed. Raised, room that others leave is used later. Test:
    /// `no_thread_gives_way_before_there_is_too_much`.
    pub(crate) const WORTH_RAISING: f64 = 0.05;
    /// Two server periods that differ by less than one part in this number are the same. Raised, a
    /// smaller drift of the period costs a system call. Test:
    /// `a_period_that_drifts_by_a_hundredth_is_another_server`.
    pub(crate) const SAME_SERVER: u64 = 100;
    /// The weight of a thread on probation, relative to others. Raised, threads with a rhythm give
    /// way to it. Test: `a_thread_on_probation_counts_a_tenth_of_one_with_a_rhythm`.
    pub(crate) const WEIGHT_ON_PROBATION: f64 = 0.1;
    /// The runtime that each period of a server gets beyond the job's own: the kernel charges what
    /// it does around a job, and on a busy machine that differs from job to job. Raised, more is
    /// reserved than needed. Test: `whose_budget_runs_out_gets_its_share_at_once`.
    pub(crate) const MARGIN: Span = Span::from_us(20);
    /// The shortest runtime in each period of a server. A budget is enforced at the scheduler's
    /// tick, and a job that overran a tiny one by a tick would pay for it with tens of periods.
    /// Raised, more is reserved than needed. Test: `the_shortest_budget_is_30_us`.
    pub(crate) const SHORTEST_RUNTIME: Span = Span::from_us(30);
    /// The least share of its period for a stage, which has other work, too: a budget is enforced
    /// at the scheduler's tick, and of less than this it would take too many periods to pay for one
    /// that it overran by. Raised, more is reserved than needed. Test:
    /// `a_stage_that_does_next_to_nothing_for_the_path_is_left_room_for_its_other_work`.
    pub(crate) const LEAST_OF_STAGE: f64 = 0.05;
    /// From this number on, requests that do not all fit are looked at in rounds, and threads'
    /// bursts are held back. Raised, one arbitration of all costs more in each turn. Test:
    /// `few_threads_are_heard_at_each_turn_and_those_of_a_crowd_now_and_then`.
    pub(crate) const MANY: usize = 100;
    /// The share of the total that a round hands out: the rest is for those who ask until the next
    /// one. Raised, rounds come more often. Test: `what_was_asked_for_is_had_whole_in_a_crowd_too`.
    pub(crate) const OF_MANY: f64 = 0.95;
    /// From one round to the next, if there is room enough for those who ask. Raised, a thread that
    /// wants less gives it back later. Test:
    /// `rounds_come_when_a_thread_waits_and_half_a_second_after_the_last`.
    pub(crate) const ROUND: Span = Span::from_ms(500);
}

/// Refusals of the actuator, and checks of what is in force.
pub(crate) mod enforcement {
    use super::Span;

    /// The first pause after a refusal. Each further one is twice as long. Raised, room that comes
    /// is used later. Test:
    /// `what_could_not_be_given_back_is_tried_again_ever_more_rarely_until_it_is`.
    pub(crate) const FIRST_RETRY: Span = Span::from_secs(1);
    /// The longest such pause. Raised, the same. Test:
    /// `what_cannot_be_given_back_is_tried_every_30_seconds_in_the_end`.
    pub(crate) const LONGEST_RETRY: Span = Span::from_secs(30);
    /// The shares of a reservation to try in turn if the kernel has no room for it. More of them
    /// cost more system calls. Test: `of_what_others_leave_a_thread_gets_the_next_step_down`.
    pub(crate) const STEPS_DOWN: [f64; 4] = [0.85, 0.7, 0.5, 0.3];
    /// The time between two checks of a requested reservation. Raised, a change by an administrator
    /// is noticed later. Test: `a_requested_reservation_is_checked_every_two_seconds`.
    pub(crate) const LOOK_AT_FIXED: Span = Span::from_ms(2000);
    /// The shortest time between two checks whether a thread still has its reservation, each a
    /// system call. Raised, the same. Test:
    /// `a_reservation_is_checked_when_its_thread_is_looked_at_after_1500_ms`.
    pub(crate) const CHECKED_EVERY: Span = Span::from_ms(1000);
}

/// Pipelines: which threads are watched, and which are stages.
pub(crate) mod pipeline {
    use super::Span;

    /// The time between two reviews of the paths. Raised, a stage is served later. Test:
    /// `a_thread_that_one_user_was_refused_can_be_watched_for_its_own`.
    pub(crate) const EVERY: Span = Span::from_ms(250);
    /// The number of exchanged wakeups from which on a thread is watched. Raised, it is watched
    /// later. Test: `one_payers_wakeups_are_counted_of_256_threads`.
    pub(crate) const WORTH_WATCHING: f64 = 6.0;
    /// The share of a count that remains a review later. Raised, threads that exchange few are
    /// watched. From: 3 wakeups a second sum up to 0.75 / (1 - 0.875) = 6. Test:
    /// `a_single_wakeup_is_forgotten_after_four_seconds`.
    pub(crate) const KEPT: f64 = 0.875;
    /// A count below this is forgotten. From: one wakeup is remembered for 17 reviews, 4 s. Test:
    /// `a_single_wakeup_is_forgotten_after_four_seconds`.
    pub(crate) const FORGOTTEN: f64 = 0.1;
    /// How long a thread is turned away the first time. Each further time is twice as long. Raised,
    /// a thread that becomes a stage late is served later. Test:
    /// `a_thread_is_turned_away_for_15_seconds_and_for_8_minutes_in_the_end`.
    pub(crate) const FIRST_TURN: Span = Span::from_secs(15);
    /// The longest such time. Test:
    /// `a_thread_is_turned_away_for_15_seconds_and_for_8_minutes_in_the_end`.
    pub(crate) const LONGEST_TURN: Span = Span::from_secs(8 * 60);
    /// The most threads that are counted and turned away, for each payer and for all. From: 100
    /// bytes each, so 100 KiB at most. Test: `one_payers_wakeups_are_counted_of_256_threads`.
    pub(crate) const KNOWN_EACH: usize = 256;
    /// Test: `all_payers_wakeups_are_counted_of_1024_threads`.
    pub(crate) const KNOWN_ALL: usize = 1024;
    /// The most threads that are watched at a time and are no stages. Raised, one user's threads
    /// cost more records of bursts. Test:
    /// `however_many_threads_the_player_wakes_few_are_watched_at_a_time`.
    pub(crate) const WATCHED_EACH: usize = 16;
    /// Test: `where_many_users_wake_many_each_has_his_share_of_all_that_are_watched`.
    pub(crate) const WATCHED_ALL: usize = 64;
    /// A watched thread that is no stage is let go after this time. Raised, another one waits.
    /// Test: `a_thread_that_the_player_wakes_at_no_rhythm_is_let_go_and_never_served`.
    pub(crate) const WATCHED: Span = Span::from_secs(10);
    /// And after this time if its users show no rhythm. Raised, the same; lowered, a player that
    /// pauses comes back without its server. Test:
    /// `a_server_is_watched_for_a_minute_while_its_player_shows_no_rhythm`.
    pub(crate) const WATCHED_AT_MOST: Span = Span::from_secs(60);
    /// The most stages. Raised, one user's may take more of what all share. Test:
    /// `one_user_cannot_take_all_places_on_paths`.
    pub(crate) const STAGES_EACH: usize = 32;
    /// Test: `one_user_cannot_take_all_places_on_paths`.
    pub(crate) const STAGES_ALL: usize = 128;
    /// A stage that is not sure to be one any more is kept for this time: a player that is behind
    /// for a moment comes back. Raised, its reservation outlives its work for longer. Test:
    /// `a_server_that_works_for_others_now_is_let_go_after_five_seconds_of_doubt`.
    pub(crate) const DOUBT: Span = Span::from_secs(5);
    /// A thread that was asked for may show a rhythm of its own before it is taken for a stage of
    /// another's path. Raised, it is served later. Test:
    /// `a_thread_that_was_asked_for_may_show_a_rhythm_of_its_own_for_three_seconds`.
    pub(crate) const OWN_RHYTHM_FIRST: Span = Span::from_secs(3);
    /// The most paths of a thread that are known. Raised, a server of many programs takes more
    /// memory. Test: `a_thread_is_known_on_four_paths`.
    pub(crate) const HEADS: usize = 4;
    /// A thread that woke its user this number of times is waited for. Raised, a starving server
    /// goes on probation later. Test: `a_thread_that_woke_its_user_three_times_may_be_tried`.
    pub(crate) const WAITED_FOR: u32 = 3;
    /// A stage wakes threads of the path for at least one of this number of jobs. Raised, a thread
    /// that only listens becomes a stage. Test:
    /// `a_thread_is_waited_for_that_wakes_the_path_for_a_quarter_of_its_jobs`.
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
    /// For an application that has just begun. From: beside hogs, of three threads that decode a
    /// film's first frame with nice -20, all were on one CPU, and a hog had half of the other.
    pub const FIRST: Boost = Boost {
        first: true,
        ..PROTECTED
    };
    /// The time between two looks at the CPU time of an application that goes first. Raised, it has
    /// more than `STARTS_WITH`; lowered, each look costs a system call for each thread. Test:
    /// `who_computes_goes_first_for_its_account_and_milliseconds_more`.
    pub(crate) const COUNTED_EVERY: Span = Span::from_ms(5);
    /// The time between two looks at the nice values of an application that begins. Its threads set
    /// values of their own as they begin, and wait behind all others until they are boosted again.
    /// Raised, they wait longer; lowered, each look costs a system call for each thread. Test:
    /// `the_nice_values_of_an_application_that_begins_are_looked_at_every_50_ms`.
    pub(crate) const GLANCE: Span = Span::from_ms(50);
    /// An application keeps a beat for this long after its last rhythm or clock. Raised, it is
    /// protected for longer than it needs; lowered, a late player, which does not sleep until it
    /// has caught up, loses protection. Test:
    /// `a_batch_program_has_no_more_than_the_cpu_time_of_a_program_that_begins`.
    pub(crate) const KEEPS: Span = Span::from_secs(2);
    /// A program with a rhythm shows it in less. Without one, and with `CAPACITY` of a CPU in use,
    /// the clock that it hears does not count: build tools and copiers hear one. Raised, these are
    /// protected for longer. Test:
    /// `one_that_hears_a_clock_and_works_to_capacity_without_a_rhythm_is_a_batch_program_too`.
    pub(crate) const UNPROVED: Span = Span::from_secs(20);
    /// Test:
    /// `one_that_hears_a_clock_and_works_to_capacity_without_a_rhythm_is_a_batch_program_too`.
    pub(crate) const CAPACITY: f64 = 0.9;
    /// Protection is in vain where, twice in a row, the application's threads wait for at least
    /// `WAITS` of the time in all and use less than `BUSY` of the CPUs. Raised, `WAITS` keeps a
    /// starving program from a probation, and `BUSY` gives one to a program that has the CPUs.
    /// Test: `protection_is_in_vain_for_5_s_where_threads_wait_and_the_cpus_are_not_theirs`.
    pub(crate) const WAITS: f64 = 0.5;
    /// Test: `protection_is_in_vain_for_5_s_where_threads_wait_and_the_cpus_are_not_theirs`.
    pub(crate) const BUSY: f64 = 0.6;
    /// How long protection counts as being in vain. Raised, probations go on for longer where
    /// protection would do. Test:
    /// `protection_is_in_vain_for_5_s_where_threads_wait_and_the_cpus_are_not_theirs`.
    pub(crate) const IN_VAIN: Span = Span::from_secs(5);
    /// The time between two looks at a thread that notified: its boost decays, and another program
    /// may have changed it. Raised, a boost that is not deserved any more lasts longer. Test:
    /// `a_boosted_thread_is_looked_at_every_100_ms`.
    pub(crate) const LOOK_EVERY: Span = Span::from_ms(100);
    /// How long a thread's share of sleep is remembered after a notification: honest threads notify
    /// now and then. Raised, it is looked at for longer. Test:
    /// `a_notification_counts_if_the_last_one_was_within_half_a_minute`.
    pub(crate) const REMEMBERED: Span = Span::from_secs(30);
}

/// The pace of the loop, and events that are held back.
pub(crate) mod batching {
    use super::Span;

    /// The time between two visits, for each thread. Raised, held events are taken in later;
    /// lowered, more turns fetch a thread's record for one job. Test:
    /// `each_is_visited_once_in_a_round_however_often_the_loop_turns`.
    pub(crate) const EACH: Span = Span::from_ms(1);
    /// The longest time between two visits of a thread. Raised, the same. Test:
    /// `each_is_visited_once_in_a_round_however_often_the_loop_turns`.
    pub(crate) const LONGEST_ROUND: Span = Span::from_secs(1);
    /// The number of held events at which a thread is visited out of turn. Raised, it takes more
    /// memory. From: a second of a thread of 32 Hz. Test:
    /// `only_what_a_settled_thread_did_is_put_by_and_not_for_ever`.
    pub(crate) const MOST: usize = 32;
    /// A longer burst is taken in at once. Raised, a thread that begins to compute is noticed
    /// later. Test: `only_what_a_settled_thread_did_is_put_by_and_not_for_ever`.
    pub(crate) const LONGEST_BURST: Span = Span::from_ms(500);
    /// The number of visits for which another exhausted budget is no news. Raised, a thread that
    /// has become short of budget is answered later. Test: `that_a_budget_ran_out_is_news_once`.
    pub(crate) const NEWS_AFTER: u8 = 2;
    /// The time between two turns. Raised, the loop answers later to everything but an exhausted
    /// budget; lowered, it costs more CPU time. Test:
    /// `pauses_grow_with_the_number_of_threads_once_none_is_new`.
    pub(crate) const PAUSE: Span = Span::from_ms(20);
    /// The number of threads from which the pauses grow. Raised, a crowd costs more CPU time. Test:
    /// `a_turn_verifies_four_rhythms_of_a_crowd_at_most`.
    pub(crate) const FEW_THREADS: u64 = 200;
    /// The most that they grow. Raised, the loop answers later. Test:
    /// `pauses_grow_with_the_number_of_threads_once_none_is_new`.
    pub(crate) const LONGEST_PAUSE: u64 = 5;
    /// Then a turn verifies no more rhythms than that. From: forty a second of a thousand threads,
    /// so each once in 25 s. Test: `a_turn_verifies_four_rhythms_of_a_crowd_at_most`.
    pub(crate) const OF_A_CROWD: usize = 4;
    /// How long a thread is new, and pauses are short. Raised, a crowd costs more while it grows.
    /// Test: `pauses_grow_with_the_number_of_threads_once_none_is_new`.
    pub(crate) const NEW: Span = Span::from_secs(3);
}

pub(crate) mod records {
    /// How many ended threads are remembered by their numbers. From: those that a shell waits for
    /// in the time over which its wakers are counted. Test:
    /// `the_last_256_ended_threads_are_remembered`.
    pub(crate) const LEFT_MOST: usize = 256;
    /// The last jobs of a thread that are kept. From: a second of a thread of 64 Hz, and two
    /// kilobytes. Raised, a thread takes more memory. Test:
    /// `the_last_jobs_are_kept_and_told_from_a_time_on`.
    pub(crate) const JOBS: usize = 64;
    /// The reports of threads that ended that are kept one by one; the others are summed up. Test:
    /// `the_last_thousand_are_kept_and_the_rest_is_in_the_sums`.
    pub(crate) const ENDED: usize = 1000;
    /// The applications whose sums are kept after their last thread has ended. Raised, a service
    /// that runs for weeks takes more memory. From: 150 bytes each, 40 kilobytes.
    pub(crate) const APPLICATIONS: usize = 256;
}
