//! What a thread says of its own work: its jobs replace those that were guessed, and its missed
//! deadlines are judged.

use onbeat_infer::jobs::Told;
use onbeat_model::{Burst, Instant, Job, Mark, Rhythm, Said};

use super::lock::Lock;
use super::timeouts::patience;
use crate::task::{Heard, Outcome, Thread};
use crate::{Settings, Why};

/// What a thread has told.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    told: Told,
    last: Instant,
}

/// What a mark meant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Marked {
    /// Nothing for now.
    Nothing,
    /// Its wish may be another one, for this reason.
    Consider(Option<Why>),
    /// As an analysis led to.
    Led(Outcome),
}

impl Declared {
    pub(crate) fn exhausted(&mut self) {
        self.told.exhausted();
    }
}

impl Thread {
    /// Takes in what the thread says.
    pub(crate) fn marked(&mut self, mark: &Mark, settings: &Settings) -> Marked {
        self.last_heard = self.last_heard.max(mark.at);
        self.figures.marks += 1;
        match mark.said {
            Said::MissedDeadline => self.missed_deadline(mark),
            Said::RealTimeExited => self.says_no_more(),
            Said::JobBegan | Said::JobEnded | Said::RealTimeStarted { .. } => {
                let word = self.declared.get_or_insert_with(Box::default);
                word.last = mark.at;
                let job = word.told.hear(mark);
                match job.zip(word.told.rhythm()) {
                    Some((job, rhythm)) => self.job_declared(&job, rhythm, settings),
                    None => Marked::Nothing,
                }
            }
        }
    }

    fn job_declared(&mut self, job: &Job, rhythm: Rhythm, settings: &Settings) -> Marked {
        if let Some(lock) = self.estimation.lock_mut().filter(|lock| lock.is_declared()) {
            if let Some(planned) = lock.runtime() {
                self.notification.job(job.ended, job.executed, planned);
            }
            let from = lock.rhythm().period;
            let rate_changed = lock.job_declared(job, rhythm);
            self.figures.job(job);
            return Marked::Consider(rate_changed.then_some(Why::RateChanged {
                from,
                to: rhythm.period,
            }));
        }
        let kind = self.predictor(settings);
        let overruns = self.declared.as_ref().and_then(|word| word.told.overruns());
        self.estimation.lock_on(|dormant| {
            let mut lock = dormant
                .filter(|lock| lock.is_declared())
                .unwrap_or_else(|| {
                    Box::new(Lock::declared(rhythm, overruns, job.ended, kind, settings))
                });
            lock.job_declared(job, rhythm);
            lock
        });
        self.analyser.clear();
        self.figures.job(job);
        Marked::Led(Outcome::Plan(Why::Told {
            period: rhythm.period,
        }))
    }

    /// It said where its jobs are, and takes it back: whether it has a rhythm is to be heard again.
    fn says_no_more(&mut self) -> Marked {
        if self.declared.take().is_some() && self.estimation.lock().is_some_and(Lock::is_declared) {
            Marked::Led(self.lose(Why::SaysNoMore))
        } else {
            Marked::Nothing
        }
    }

    fn missed_deadline(&mut self, mark: &Mark) -> Marked {
        self.figures.missed_told += 1;
        let Some(lock) = self.estimation.lock_mut() else {
            return Marked::Nothing;
        };
        if !self.notification.is_credible() {
            return Marked::Nothing;
        }
        let deadline = lock.missed(mark.at, mark.woke);
        let period = lock.rhythm().period;
        if self.notification.missed(mark.at, deadline, period) {
            let factor = self.notification.factor();
            Marked::Consider(Some(Why::MissedDeadline { factor }))
        } else {
            Marked::Nothing
        }
    }

    /// A burst of a thread that says where its jobs are: none if it does not.
    pub(crate) fn burst_declared(&mut self, burst: &Burst) -> Option<Heard> {
        let lock = self.estimation.lock().filter(|lock| lock.is_declared())?;
        let silent_since = self
            .declared
            .as_ref()
            .map(|word| word.last)
            .unwrap_or_default();
        if burst.blocked.since(silent_since) < patience(lock.rhythm().period) {
            return Some(Heard::Nothing);
        }
        self.declared = None;
        self.lose(Why::SaysNoMore);
        Some(Heard::Lost(Why::SaysNoMore))
    }
}
