//! Which rhythm is heard in a thread's bursts: by the expiries of its timers and the default
//! analyser, or by the LFS++ paper's.

use onbeat_infer::period::{armed, lfspp};
use onbeat_model::{Burst, Instant, Rhythm};

use super::lock::Lock;
use crate::Settings;
use crate::settings::Method;
use crate::task::Thread;

impl Thread {
    /// The last rhythm it had, if ever any.
    pub(crate) fn rhythm(&self) -> Option<Rhythm> {
        let now = self.estimation.lock().map(Lock::rhythm);
        now.or(self.last_rhythm)
    }

    /// Its bursts of the last seconds, as far as anything is made of them.
    pub(crate) fn bursts(&self) -> impl DoubleEndedIterator<Item = Burst> {
        self.analyser.bursts()
    }

    /// The rhythm of its timers' expiries, if it is beyond doubt.
    pub(crate) fn armed(&self, settings: &Settings) -> Option<Rhythm> {
        let rate = self.false_alarm_rate(settings);
        let asked = settings.method == Method::Default;
        let found = asked.then(|| armed::rhythm(self.analyser.bursts()))?;
        found.filter(|rhythm| rhythm.confidence >= 1.0 - rate)
    }

    /// How often the next analysis may find a rhythm by chance.
    fn false_alarm_rate(&self, settings: &Settings) -> f64 {
        self.attempts
            .false_alarm_rate(settings.analysis.false_alarm_rate)
    }

    /// The strongest rhythm in the bursts heard up to `now`, if one is beyond doubt.
    pub(crate) fn strongest(&mut self, now: Instant, settings: &Settings) -> Option<Rhythm> {
        match settings.method {
            Method::Default => self.armed(settings).or_else(|| {
                let rate = self.false_alarm_rate(settings);
                self.analyser.analyse_at(now, rate).into_iter().next()
            }),
            Method::Lfspp => {
                let mut analyser = lfspp::Analyser::new(lfspp::Config::default()).ok()?;
                // Each analysis begins anew: there are few of them, and a thread's wakeups are
                // known.
                for burst in self.analyser.bursts() {
                    analyser.hear_at(burst.woke);
                }
                analyser.analyse()
            }
        }
    }
}
