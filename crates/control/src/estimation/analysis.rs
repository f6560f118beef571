//! Which rhythm is heard in a thread's bursts: by the default analyser, or by the LFS++ paper's.

use onbeat_infer::period::lfspp;
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

    /// The strongest rhythm in the bursts heard up to `now`, if one is beyond doubt.
    pub(crate) fn strongest(&mut self, now: Instant, settings: &Settings) -> Option<Rhythm> {
        match settings.method {
            Method::Default => {
                let rate = settings.analysis.false_alarm_rate;
                let enough = self.attempts.confidence(rate);
                let mut found = self.analyser.analyse(now).into_iter();
                found.find(|rhythm| rhythm.confidence >= enough)
            }
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
