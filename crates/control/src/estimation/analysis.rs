//! Which rhythm is in a thread's bursts, by the expiries of its timers and the analyser; and when
//! the next analysis is due.
//!
//! An analysis costs as much as hundreds of events, so it waits for new bursts. A young thread is
//! analysed soon, because the lock is to come within ten jobs. The distances grow while it shows no
//! rhythm, and again while its rhythm is verified.

use std::collections::VecDeque;

use onbeat_infer::period::{Analyser, AnalyserConfig, armed};
use onbeat_model::{Burst, Instant, Rhythm, Span, TaskId};

use crate::timer::QUARTER;

/// The last periods whose bursts are analysed after a thread went astray.
const NEWS_PERIODS: u64 = 4;

/// The fewest new bursts that are worth an analysis: as many as show a period.
pub(super) const FEWEST: u32 = 6;
/// The time between two analyses of a young thread, which is to be locked within ten jobs.
const FIRST_PAUSE: Span = Span::from_ms(15);
/// The longest time between two analyses in vain.
const LONGEST_PAUSE: Span = Span::from_ms(500);
/// The longest time between two verifications: the tracker notices a change of rate.
const LONGEST_VERIFICATION: Span = Span::from_secs(64);
/// The lowest false-alarm rate of one analysis, which every true period passes after a few jobs.
const LEAST_RATE: f64 = 1e-4;

/// The bursts of the last seconds, and when they are to be analysed.
pub(super) struct Analysis {
    pub(super) analyser: Analyser,
    pub(super) attempts: Attempts,
    due: Due,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    No,
    Now,
    Queued,
}

impl Analysis {
    pub(super) fn new() -> Self {
        Self {
            analyser: Analyser::new(AnalyserConfig::default()),
            attempts: Attempts::new(),
            due: Due::No,
        }
    }

    /// Takes in a burst. A thread that shows its rhythm by its timers is worth an analysis at once,
    /// unless it `has_rhythm`, and none is if it `follows_others`.
    pub(super) fn burst(&mut self, burst: &Burst, has_rhythm: bool, follows_others: bool) {
        self.analyser.hear(burst);
        let is_worth_it = self.attempts.heard(burst.blocked)
            || burst.expiry.is_some() && !has_rhythm && self.armed().is_some();
        if is_worth_it && self.due == Due::No && !follows_others {
            self.due = Due::Now;
        }
    }

    /// True once each time that the thread has become worth an analysis.
    pub(super) fn take_due(&mut self) -> bool {
        let due = self.due == Due::Now;
        if due {
            self.due = Due::Queued;
        }
        due
    }

    pub(super) fn begin(&mut self) {
        self.due = Due::No;
    }

    pub(super) fn failed(&mut self, now: Instant) {
        self.attempts.failed(now);
    }

    pub(super) fn clear(&mut self) {
        self.analyser.clear();
        self.attempts = Attempts::new();
    }

    pub(super) fn forget_before(&mut self, since: Instant) {
        self.analyser.forget_before(since, FEWEST as usize);
    }

    /// Forgets all bursts but those of the last periods before `last`, and analyses these at once:
    /// the others are of another rhythm.
    pub(super) fn listen_to_news(&mut self, last: Instant, period: Span) {
        self.forget_before(last - period * NEWS_PERIODS);
        self.attempts = Attempts::at_once();
        self.due = Due::Now;
    }

    /// The rhythm of the timers' expiries, if it is beyond doubt.
    pub(super) fn armed(&self) -> Option<Rhythm> {
        let rate = self.false_alarm_rate();
        let found = armed::rhythm(self.analyser.bursts());
        found.filter(|rhythm| rhythm.confidence >= 1.0 - rate)
    }

    /// How often the next analysis may find a rhythm by chance.
    fn false_alarm_rate(&self) -> f64 {
        self.attempts
            .false_alarm_rate(AnalyserConfig::default().false_alarm_rate)
    }

    /// The strongest rhythm in the bursts up to `now`, if one is beyond doubt.
    pub(super) fn strongest(&mut self, now: Instant) -> Option<Rhythm> {
        self.armed().or_else(|| {
            let rate = self.false_alarm_rate();
            self.analyser.analyse_at(now, rate).into_iter().next()
        })
    }
}

/// The analyses that wait for their turn. Those of young threads come first; the others share a
/// part of the loop's time, so that nobody's threads can keep it from its work.
#[derive(Debug, Default)]
pub(crate) struct AnalysisQueue {
    young: VecDeque<TaskId>,
    /// With the number of bursts that are looked at.
    others: VecDeque<(TaskId, u64)>,
    /// The others begin no earlier.
    not_before: Instant,
}

/// An analysis of so many bursts takes some 0.1 ms.
const FEW: u64 = 50;
/// One of more takes some 2 us for each burst: so all together take 5% of a CPU.
const SHARED_PAUSE_FOR_A_BURST: Span = Span::from_us(40);
/// For so long unused time is kept, which makes 2 ms at once.
const KEPT: Span = Span::from_ms(40);

impl AnalysisQueue {
    pub(crate) fn put(&mut self, task: TaskId, bursts: usize) {
        let bursts = bursts as u64;
        if bursts > FEW {
            self.others.push_back((task, bursts));
        } else {
            self.young.push_back(task);
        }
    }

    /// The next thread to analyse, of those that are there.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        is_there: impl Fn(TaskId) -> bool,
    ) -> Option<TaskId> {
        while let Some(young) = self.young.pop_front() {
            if is_there(young) {
                return Some(young);
            }
        }
        while now >= self.not_before {
            let (task, bursts) = self.others.pop_front()?;
            if is_there(task) {
                let from = self.not_before.max(now - KEPT);
                self.not_before = from + SHARED_PAUSE_FOR_A_BURST * bursts;
                return Some(task);
            }
        }
        None
    }
}

/// A thread's state since its last analysis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempts {
    fresh: u32,
    needed: u32,
    not_before: Instant,
    failed: u32,
}

impl Attempts {
    pub(crate) const fn new() -> Self {
        Self {
            fresh: 0,
            needed: FEWEST,
            not_before: Instant::ZERO,
            failed: 0,
        }
    }

    /// For a thread whose last bursts are known already.
    pub(crate) const fn at_once() -> Self {
        Self {
            needed: 1,
            ..Self::new()
        }
    }

    /// The false-alarm rate this time if one thread in `1 / rate` may be called periodic by chance,
    /// however often it is analysed: the n-th analysis in vain leaves the next one
    /// 1/(n+1)^2 of that (alpha spending, as in sequential trials; the sum of all is 1.6 times the
    /// rate). Stops falling at a ten-thousandth, which every true rhythm passes after a few beats.
    pub(crate) fn false_alarm_rate(&self, rate: f64) -> f64 {
        let analyses = f64::from(self.failed.saturating_add(1));
        (rate / (analyses * analyses)).max(rate.min(LEAST_RATE))
    }

    /// Counts a burst that ended at `at`. True if it is time for an analysis.
    pub(crate) fn heard(&mut self, at: Instant) -> bool {
        self.fresh = self.fresh.saturating_add(1);
        self.fresh >= self.needed && at >= self.not_before
    }

    pub(crate) fn failed(&mut self, now: Instant) {
        self.failed = self.failed.saturating_add(1);
        self.fresh = 0;
        self.needed = 1 + self.failed / 4;
        self.not_before = now + FIRST_PAUSE.doubled(self.failed / 4, LONGEST_PAUSE);
    }

    pub(crate) fn again(&mut self, now: Instant) {
        self.fresh = 0;
        self.needed = FEWEST / 2;
        self.not_before = now + FIRST_PAUSE * 4;
    }

    /// Schedules the next verification of a rhythm that was found in `bursts` bursts and verified
    /// `passed` times: after half as many bursts again, and twice the last pause.
    pub(crate) fn verify(&mut self, now: Instant, passed: u32, bursts: usize) {
        self.failed = 0;
        self.fresh = 0;
        self.needed = FEWEST.max(u32::try_from(bursts / 2).unwrap_or(u32::MAX));
        self.not_before = now + QUARTER.doubled(passed, LONGEST_VERIFICATION);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_rhythm_is_analysed_less_often_in_the_end() {
        let mut attempts = Attempts::new();
        let mut analyses = 0;
        for ms in 0..60_000 {
            let now = Instant::ZERO + Span::from_ms(ms);
            if attempts.heard(now) {
                attempts.failed(now);
                analyses += 1;
            }
        }
        assert!((100..150).contains(&analyses), "{analyses}");
    }

    #[test]
    fn many_old_threads_take_a_part_of_the_time_and_hold_up_no_young_one() {
        let mut queue = AnalysisQueue::default();
        let old = (1..=60).map(TaskId::recorded);
        old.clone().for_each(|task| queue.put(task, 1000));
        let young = TaskId::recorded(99);
        let mut analyses = 0;
        for ms in 0..1000 {
            let now = Instant::ZERO + Span::from_ms(ms);
            queue.put(young, 20);
            assert_eq!(queue.next(now, |_| true), Some(young));
            analyses += u32::from(queue.next(now, |_| true).is_some());
        }
        assert_eq!(analyses, 25);
        let last = TaskId::recorded(60);
        let later = Instant::ZERO + Span::from_secs(2);
        assert_eq!(
            queue.next(later, |task| task == last),
            Some(last),
            "gone ones cost nothing"
        );
    }
}
