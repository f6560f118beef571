//! Whether a thread's reservation does it harm: its period or its budget may be wrong.
//!
//! There are two signs, and both have the same consequence. The thread goes without a reservation
//! of that period for a pause, which doubles each time.
//!
//! 1. Too many of its last jobs ran out of budget and were late, and either its jobs are uneven, or
//!    the budget is short of what it needs.
//! 2. Its jobs wait longer with the reservation than without it. A job waits while it is ready and
//!    has no CPU, throttled or behind others.
//!
//! # The comparison of waiting times
//! Load that rises when the reservation begins looks the same as a reservation that does harm. So
//! the jobs from before the reservation only raise a suspicion. Then the thread goes without for
//! [`SAMPLE`] jobs, and gets its reservation again. That does harm if its jobs waited longer in
//! both samples around this trial than in the trial. Load that rises or falls once is in one of
//! the two comparisons at most.
//!
//! A reservation may seem to do harm for a while only: the thread catches up, or others have none
//! yet. And waiting is no harm if the deadlines are met. So a pause has to pay: it ends early if it
//! does not halve the misses, and then none begins for the length of the first one.
//!
//! Each comparison is a rank-sum test (Wilcoxon; ties have their mean rank), with one false alarm
//! in 1,000 if the jobs of both samples wait alike and independently of each other. So at most one
//! trial in 1,000 ends with a wrong verdict, also if the load changes once meanwhile. A suspicion
//! is a false alarm once in 100 samples, and a trial follows after 20 s at the earliest, then after
//! twice as long each time. Waiting times count in steps of a twentieth of the period: less does
//! no harm.

use onbeat_model::{Instant, Job, Span};

use super::lock::same_period;
use crate::Why;
use crate::tuning::harm::{
    LATE_MOST, LEARNING, LONGEST_PAUSE, PAUSE, SAMPLE, STEPS, SURE, SUSPECT,
};

/// The longest waiting time that is told from others, in steps: two periods.
const TWO_PERIODS: usize = 2 * STEPS as usize;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Harm {
    is_held: bool,
    /// A bit for each of the last jobs, of any period: its budget ran out, and it was late. Jobs
    /// that are stopped each time hide their period, so that another one is found now and then.
    late: u64,
    jobs: u32,
    /// The period that the samples are of.
    period: Span,
    /// With the reservation, without it, and with it again.
    before: Sample,
    without: Sample,
    with: Sample,
    pause: Option<Pause>,
    /// Number of pauses and trials.
    times: u32,
    /// No trial begins before.
    tries_from: Instant,
    /// No pause begins before.
    rests_from: Instant,
}

/// The thread goes without a reservation of this period.
#[derive(Debug)]
struct Pause {
    period: Span,
    /// When it ends; a trial ends with its sample.
    until: Option<Instant>,
}

/// The waiting times of up to [`SAMPLE`] jobs in a row, the last ones, and which of them missed
/// their deadlines.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    steps: [u8; SAMPLE],
    missed: [bool; SAMPLE],
    count: usize,
}

/// Facts about a reservation that the loop knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReservationFacts {
    /// The thread is served by something else if it has no reservation.
    pub(crate) has_others: bool,
    /// The reservation is less than the thread needs, because of a quota or a cap. Looked at only
    /// where the thread is often late.
    pub(crate) is_short: bool,
}

impl Sample {
    fn put(&mut self, waited: Span, period: Span, is_missed: bool) {
        let steps = (waited * STEPS).ratio(period).min(TWO_PERIODS as f64);
        self.steps[self.count % SAMPLE] = steps as u8;
        self.missed[self.count % SAMPLE] = is_missed;
        self.count += 1;
    }

    /// The share of the jobs that missed their deadlines.
    fn missed(&self) -> f64 {
        let jobs = &self.missed[..self.steps().len()];
        let missed = jobs.iter().filter(|&&is_missed| is_missed).count();
        missed as f64 / jobs.len().max(1) as f64
    }

    fn steps(&self) -> &[u8] {
        &self.steps[..self.count.min(SAMPLE)]
    }

    const fn is_full(&self) -> bool {
        self.count >= SAMPLE
    }

    fn mean(&self, period: Span) -> Span {
        let steps: u64 = self.steps().iter().map(|&steps| u64::from(steps)).sum();
        period * steps / (STEPS * self.steps().len().max(1) as u64)
    }

    /// By how many standard deviations these jobs waited longer than `others`.
    fn deviation_from(&self, others: &Self) -> f64 {
        let mut counts = [[0_u32; 2]; TWO_PERIODS + 1];
        for (sample, jobs) in [self, others].into_iter().enumerate() {
            for &steps in jobs.steps() {
                counts[usize::from(steps)][sample] += 1;
            }
        }
        let [own, other] = [self, others].map(|sample| sample.steps().len() as f64);
        let all = own + other;
        let (mut below, mut ranks, mut ties) = (0.0, 0.0, 0.0);
        for [of_own, of_others] in counts.map(|counts| counts.map(f64::from)) {
            let tied = of_own + of_others;
            ranks += of_own * (below + (tied + 1.0) / 2.0);
            ties += tied * (tied * tied - 1.0);
            below += tied;
        }
        let mean = own * (all + 1.0) / 2.0;
        let variance = own * other / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
        if variance > 0.0 {
            (ranks - mean - 0.5) / variance.sqrt()
        } else {
            0.0
        }
    }

    /// True if these jobs waited longer than `others`, by more than chance.
    fn waited_longer_than(&self, others: &Self) -> bool {
        self.is_full() && others.is_full() && self.deviation_from(others) > SURE
    }
}

impl Harm {
    /// Whether the next jobs have a reservation.
    pub(super) fn holds(&mut self, is_held: bool) {
        if std::mem::replace(&mut self.is_held, is_held) == is_held {
            return;
        }
        let with = std::mem::take(&mut self.with);
        if !is_held {
            self.before = with;
            self.without = Sample::default();
        }
    }

    /// True if nothing is known about reservations of this period.
    pub(super) fn is_new_to(&self, period: Span) -> bool {
        !same_period(self.period, period)
    }

    /// Takes in a job of a thread with this period.
    pub(super) fn job(&mut self, job: &Job, period: Span) {
        if self.is_new_to(period) {
            *self = Self {
                period,
                is_held: self.is_held,
                late: self.late,
                jobs: self.jobs,
                pause: self.pause.take(),
                times: self.times,
                tries_from: self.tries_from,
                rests_from: self.rests_from,
                ..Self::default()
            };
        }
        let is_late = job.exhausted && job.missed();
        self.late = self.late << 1 | u64::from(is_late);
        self.jobs = self.jobs.saturating_add(1);
        let sample = if self.is_held {
            &mut self.with
        } else {
            &mut self.without
        };
        sample.put(job.waited, self.period, job.missed());
    }

    /// True if a thread with this period is to go without a reservation.
    pub(super) fn forbids(&self, period: Span) -> bool {
        let pause = self.pause.as_ref();
        pause.is_some_and(|pause| same_period(pause.period, period))
    }

    /// The reason why the thread goes without its reservation from `now` on, after a job. Ends a
    /// pause that is over.
    pub(super) fn judge(
        &mut self,
        means: ReservationFacts,
        is_uneven: impl FnOnce() -> bool,
        now: Instant,
    ) -> Option<Why> {
        if self.forbids(self.period) {
            let until = self.pause.as_ref().and_then(|pause| pause.until);
            let is_over = until.map_or(self.without.is_full(), |until| now >= until);
            let is_in_vain = !is_over && self.is_no_better_without();
            if is_in_vain {
                self.rests_from = now + PAUSE;
            }
            if is_over || is_in_vain {
                self.pause = None;
            }
            return None;
        }
        if !self.is_held || now < self.rests_from {
            return None;
        }
        let may_be_better = || means.is_short || means.has_others && is_uneven();
        if self.is_often_late() && may_be_better() {
            let (late, of) = (self.late.count_ones(), self.jobs.min(u64::BITS));
            let pause = self.rest(now);
            return Some(Why::HeldBack { late, of, pause });
        }
        if !self.with.count.is_multiple_of(SAMPLE) {
            return None;
        }
        let [with, without] = [&self.with, &self.without].map(|sample| sample.mean(self.period));
        if self.with.count == SAMPLE
            && self.with.waited_longer_than(&self.without)
            && self.before.waited_longer_than(&self.without)
        {
            let pause = self.rest(now);
            return Some(Why::WaitsLonger {
                with,
                without,
                pause,
            });
        }
        let is_suspect = self.with.deviation_from(&self.without) > SUSPECT;
        if !is_suspect || now < self.tries_from {
            return None;
        }
        self.tries_from = now + self.next_pause();
        self.go_without(None);
        Some(Why::Compared { with, without })
    }

    /// True if the thread misses more than half as many deadlines without the reservation as it did
    /// with it, and more than by chance.
    fn is_no_better_without(&self) -> bool {
        let chance = f64::from(LATE_MOST) / SAMPLE as f64;
        self.without.is_full() && self.without.missed() > self.before.missed() / 2.0 + chance
    }

    /// True if more of the last jobs than by chance ran out of budget and were late.
    pub(super) const fn is_often_late(&self) -> bool {
        self.late.count_ones() > LATE_MOST
    }

    /// True once the thread's jobs tell what is usual.
    pub(super) const fn has_learnt(&self) -> bool {
        self.jobs >= LEARNING
    }

    /// Goes without a reservation for a pause, and returns how long.
    fn rest(&mut self, now: Instant) -> Span {
        let pause = self.next_pause();
        self.go_without(Some(now + pause));
        pause
    }

    fn next_pause(&mut self) -> Span {
        let pause = PAUSE.doubled(self.times, LONGEST_PAUSE);
        self.times = self.times.saturating_add(1);
        pause
    }

    fn go_without(&mut self, until: Option<Instant>) {
        (self.late, self.jobs) = (0, 0);
        self.pause = Some(Pause {
            period: self.period,
            until,
        });
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::{Burst, TaskId};

    use super::*;

    #[test]
    fn a_thread_that_stands_down_again_and_again_does_so_for_ten_minutes() {
        let mut harm = Harm::default();
        let pauses: Vec<Span> = (0..10).map(|_| harm.next_pause()).collect();
        assert_eq!(pauses[0], Span::from_secs(20));
        assert_eq!(pauses[9], Span::from_secs(640));
    }

    #[test]
    fn a_pause_that_does_not_halve_the_misses_ends_early_and_none_begins_for_20_s() {
        for (late_of_10, ends_early) in [(0, false), (1, false), (3, true)] {
            let mut harm = Harm::default();
            let at = |number: u64| Instant::ZERO + PERIOD * number;
            let means = ReservationFacts {
                has_others: true,
                is_short: false,
            };
            let mut hear = |number: u64, is_held, is_late: bool| {
                harm.holds(is_held);
                let took = if is_late { PERIOD * 2 } else { PERIOD / 2 };
                let burst = Burst::alone(TaskId::recorded(1), at(number), took);
                let job = Job {
                    exhausted: is_held,
                    ..Job::of(&burst, at(number), at(number + 1))
                };
                harm.job(&job, PERIOD);
                let why = harm.judge(means, || true, at(number));
                (why.is_some(), harm.forbids(PERIOD))
            };
            // Five of the first 50 are late.
            let first: Vec<_> = (0..50).map(|n| hear(n, true, n % 10 == 9).0).collect();
            assert_eq!(first.iter().filter(|&&rests| rests).count(), 1);
            assert!(first[49]);
            let pause = (50..200).map(|n| hear(n, false, n % 10 < late_of_10).1);
            assert_eq!(pause.last(), Some(!ends_early), "{late_of_10}");
            // None begins for 20 s after it.
            let again = (200..2000).find(|&n| hear(n, true, n % 10 == 9).0);
            assert!(again.is_some_and(|number| number > 1000), "{again:?}");
        }
    }

    /// Evenly between 0 and 1.
    fn noise(state: &mut u64) -> f64 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*state >> 40) as f64 / (1 << 24) as f64
    }

    fn sample(state: &mut u64, waits_ms: impl Fn(f64) -> f64) -> Sample {
        let mut sample = Sample::default();
        for _ in 0..SAMPLE {
            let waited = Span::from_ms(1).scale(waits_ms(noise(state)));
            sample.put(waited, PERIOD, false);
        }
        sample
    }

    /// Of 100,000 comparisons of samples that are alike, how many tell a difference.
    fn false_alarms(waits_ms: impl Fn(f64) -> f64) -> u32 {
        let mut state = 1;
        let mut differs = || {
            let one = sample(&mut state, &waits_ms);
            one.waited_longer_than(&sample(&mut state, &waits_ms))
        };
        (0..100_000).map(|_| u32::from(differs())).sum()
    }

    #[test]
    fn jobs_that_wait_alike_seem_to_differ_in_one_case_of_a_thousand() {
        let few_wait = |share: f64| move |x: f64| if x < share { 9.0 } else { 0.0 };
        let alike = [
            false_alarms(|x| x * 20.0),
            false_alarms(|x| x * 3.0),
            false_alarms(|x| 1.0 / (1.0 - x)),
            false_alarms(few_wait(0.1)),
            false_alarms(few_wait(0.5)),
            false_alarms(few_wait(0.9)),
        ];
        // A thousandth is 100, and four standard deviations are 40.
        assert!(alike.iter().all(|&alarms| alarms < 140), "{alike:?}");
        assert!(alike.iter().any(|&alarms| alarms > 20), "{alike:?}");
    }

    const PERIOD: Span = Span::from_ms(20);

    #[test]
    fn jobs_that_are_stopped_count_also_if_another_period_is_found_now_and_then() {
        for (is_short, stands_down) in [(true, true), (false, false)] {
            let mut harm = Harm::default();
            harm.holds(true);
            let why = (0..64).find_map(|number| {
                let period = PERIOD / (1 + number / 3 % 2);
                let burst = Burst::alone(TaskId::recorded(1), Instant::ZERO, period * 2);
                let stopped = Job {
                    exhausted: true,
                    ..Job::of(&burst, Instant::ZERO, Instant::ZERO + period)
                };
                harm.job(&stopped, period);
                let means = ReservationFacts {
                    has_others: true,
                    is_short,
                };
                harm.judge(means, || false, Instant::ZERO)
            });
            assert_eq!(why.is_some(), stands_down, "{why:?}");
        }
    }

    /// The verdict after jobs with a reservation, without it, and with it again, of which the job
    /// with each number waits that long.
    fn verdict(waits_ms: &mut dyn FnMut(usize) -> f64) -> Option<Why> {
        let mut harm = Harm::default();
        for number in 0..3 * SAMPLE {
            harm.holds(number / SAMPLE != 1);
            let burst = Burst::alone(TaskId::recorded(1), Instant::ZERO, Span::from_ms(1));
            let job = Job {
                waited: Span::from_ms(1).scale(waits_ms(number)),
                ..Job::of(&burst, Instant::ZERO, Instant::ZERO + PERIOD)
            };
            harm.job(&job, PERIOD);
        }
        let means = ReservationFacts {
            has_others: true,
            is_short: false,
        };
        harm.judge(means, || false, Instant::ZERO)
    }

    /// Of 20,000 trials in which the load changes once, at any time, the number of verdicts that
    /// say harm. Twenty are allowed.
    fn wrong_verdicts((before, after): (f64, f64)) -> usize {
        let mut state = 3;
        let mut is_wrong = |_: &u32| {
            let changes = (noise(&mut state) * 3.0 * SAMPLE as f64) as usize;
            let mut waits_ms = |number| {
                let mean = if number < changes { before } else { after };
                -mean * (1.0 - noise(&mut state)).ln()
            };
            matches!(verdict(&mut waits_ms), Some(Why::WaitsLonger { .. }))
        };
        (0..20_000).filter(&mut is_wrong).count()
    }

    #[test]
    fn of_a_thousand_trials_at_most_one_says_harm_where_only_the_load_changes() {
        for load in [(5.0, 5.0), (0.5, 9.0), (9.0, 0.5), (2.0, 4.0)] {
            let wrong = wrong_verdicts(load);
            assert!(wrong <= 20, "{load:?}: {wrong}");
        }
        let mut state = 4;
        let mut harms = |_: &u32| {
            let waits = |number| if number / SAMPLE == 1 { 1.0 } else { 6.0 };
            let mut waits_ms = |number| -waits(number) * (1.0 - noise(&mut state)).ln();
            matches!(verdict(&mut waits_ms), Some(Why::WaitsLonger { .. }))
        };
        let right = (0..1000).filter(&mut harms).count();
        assert!(right >= 900, "{right}");
    }

    #[test]
    fn waiting_counts_where_a_third_of_the_jobs_wait_or_all_wait_a_period_longer() {
        let mut state = 2;
        let none = sample(&mut state, |_| 0.0);
        let third = sample(&mut state, |x| if x < 0.4 { 8.0 } else { 0.0 });
        let all = sample(&mut state, |x| 20.0 + x);
        assert!(third.waited_longer_than(&none));
        assert!(all.waited_longer_than(&third));
        assert!(!none.waited_longer_than(&third) && !third.waited_longer_than(&all));
        let trifle = sample(&mut state, |_| 0.9);
        assert!(!trifle.waited_longer_than(&none), "less than a twentieth");
    }
}
