//! Which rhythm is in a thread's bursts, by the expiries of its timers and the default analyser, or
//! by another one; and when the next analysis is due.

use onbeat_infer::period::{Analyser, AnalyserConfig, armed};
use onbeat_model::{Burst, Instant, Rhythm, Span};

use super::schedule::{Attempts, FEWEST};
use crate::Settings;

/// The last periods whose bursts are analysed after a thread went astray.
const NEWS_PERIODS: u64 = 4;

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
    pub(super) fn burst(
        &mut self,
        burst: &Burst,
        settings: &Settings,
        has_rhythm: bool,
        follows_others: bool,
    ) {
        self.analyser.hear(burst);
        let is_worth_it = self.attempts.heard(burst.blocked)
            || burst.expiry.is_some() && !has_rhythm && self.armed(settings).is_some();
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
    pub(super) fn armed(&self, settings: &Settings) -> Option<Rhythm> {
        let rate = self.false_alarm_rate();
        let asked = settings.estimation.analyse.is_none();
        let found = asked.then(|| armed::rhythm(self.analyser.bursts()))?;
        found.filter(|rhythm| rhythm.confidence >= 1.0 - rate)
    }

    /// How often the next analysis may find a rhythm by chance.
    fn false_alarm_rate(&self) -> f64 {
        self.attempts
            .false_alarm_rate(AnalyserConfig::default().false_alarm_rate)
    }

    /// The strongest rhythm in the bursts up to `now`, if one is beyond doubt.
    pub(super) fn strongest(&mut self, now: Instant, settings: &Settings) -> Option<Rhythm> {
        if let Some(analyse) = settings.estimation.analyse {
            return analyse(&mut self.analyser.bursts());
        }
        self.armed(settings).or_else(|| {
            let rate = self.false_alarm_rate();
            self.analyser.analyse_at(now, rate).into_iter().next()
        })
    }
}
