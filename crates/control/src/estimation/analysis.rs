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
/// The longest time between two analyses in vain, and for each burst that they look at: an analysis
/// takes some 2 us for each, so a thread without a rhythm takes 0.1% of a CPU at most.
const LONGEST_PAUSE: Span = Span::from_ms(500);
const PAUSE_FOR_A_BURST: Span = Span::from_ms(2);
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
        let bursts = self.analyser.bursts().len();
        self.attempts.failed(now, bursts);
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

/// The analyses that wait for their turn. Those of threads without a rhythm come first.
#[derive(Debug, Default)]
pub(crate) struct AnalysisQueue {
    first: VecDeque<TaskId>,
    verifications: VecDeque<TaskId>,
}

impl AnalysisQueue {
    pub(crate) fn put(&mut self, task: TaskId, verifies: bool) {
        let queue = if verifies {
            &mut self.verifications
        } else {
            &mut self.first
        };
        queue.push_back(task);
    }

    pub(crate) fn next(&mut self) -> Option<TaskId> {
        let first = self.first.pop_front();
        first.or_else(|| self.verifications.pop_front())
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

    pub(crate) fn failed(&mut self, now: Instant, bursts: usize) {
        let longest = LONGEST_PAUSE.max(PAUSE_FOR_A_BURST * bursts as u64);
        self.failed = self.failed.saturating_add(1);
        self.fresh = 0;
        self.needed = 1 + self.failed / 4;
        self.not_before = now + FIRST_PAUSE.doubled(self.failed / 4, longest);
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
    fn a_thread_without_rhythm_is_analysed_less_often_in_the_end_the_more_that_costs() {
        for (bursts, expected) in [(10, 100..150), (1000, 40..60)] {
            let mut attempts = Attempts::new();
            let mut analyses = 0;
            for ms in 0..60_000 {
                let now = Instant::ZERO + Span::from_ms(ms);
                if attempts.heard(now) {
                    attempts.failed(now, bursts);
                    analyses += 1;
                }
            }
            assert!(expected.contains(&analyses), "{analyses}");
        }
    }
}
