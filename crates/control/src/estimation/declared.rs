//! A thread's marks of its own work: its jobs replace those that were guessed, and its missed
//! deadlines are judged.

use onbeat_infer::jobs::MarkedJobs;
use onbeat_model::{Burst, Instant, Job, Mark, Rhythm, Said};

use super::lock::Lock;
use super::{Estimator, News, patience};
use crate::report::account::ThreadAccount;
use crate::{EstimationSettings, Why};

#[derive(Debug, Default)]
pub(super) struct Declared {
    told: MarkedJobs,
    last: Instant,
    is_doubted: bool,
}

impl Declared {
    pub(super) fn exhausted(&mut self) {
        self.told.exhausted();
    }
}

impl Estimator {
    pub(crate) fn marked(
        &mut self,
        mark: &Mark,
        account: &mut ThreadAccount,
        settings: &EstimationSettings,
    ) -> News {
        self.heard.last = self.heard.last.max(mark.at);
        account.marks.marks += 1;
        match mark.said {
            Said::MissedDeadline => {
                account.marks.missed_told += 1;
                self.missed_deadline(mark)
            }
            Said::RealTimeExited => self.says_no_more(),
            Said::JobBegan | Said::JobEnded | Said::RealTimeStarted { .. } => {
                let declared = self.declared.get_or_insert_with(Box::default);
                declared.last = mark.at;
                let job = declared.told.hear(mark);
                let Some((job, rhythm)) = job.zip(declared.told.rhythm()) else {
                    return News::None;
                };
                account.job(&job);
                self.job_declared(&job, rhythm, settings)
            }
        }
    }

    fn job_declared(&mut self, job: &Job, rhythm: Rhythm, settings: &EstimationSettings) -> News {
        if let Some(lock) = self.state.lock_mut().filter(|lock| lock.is_declared()) {
            if let Some(planned) = lock.runtime() {
                self.notification.job(job.ended, job.executed, planned);
            }
            let from = lock.rhythm().period;
            let rate_changed = lock.job_declared(job, rhythm);
            return News::Demand(rate_changed.then_some(Why::RateChanged {
                from,
                to: rhythm.period,
            }));
        }
        let declared = self.declared.as_ref();
        let overruns = declared.and_then(|declared| declared.told.overruns());
        self.state.lock_on(|dormant| {
            let mut lock = dormant
                .filter(|lock| lock.is_declared())
                .unwrap_or_else(|| Box::new(Lock::declared(rhythm, overruns, job.ended, settings)));
            lock.job_declared(job, rhythm);
            lock
        });
        self.analysis.analyser.clear();
        News::Locked(Why::Told {
            period: rhythm.period,
        })
    }

    /// Why its marks make no sense, once.
    pub(crate) fn take_contradiction(&mut self) -> Option<Why> {
        let declared = self
            .declared
            .as_mut()
            .filter(|declared| !declared.is_doubted)?;
        let (period, marked) = declared.told.contradiction()?;
        declared.is_doubted = true;
        Some(Why::Contradicts { period, marked })
    }

    /// It said where its jobs are, and takes it back: whether it has a rhythm is to be heard again.
    fn says_no_more(&mut self) -> News {
        if self.declared.take().is_some() && self.state.lock().is_some_and(Lock::is_declared) {
            self.lose(Why::SaysNoMore)
        } else {
            News::None
        }
    }

    fn missed_deadline(&mut self, mark: &Mark) -> News {
        let Some(lock) = self.state.lock_mut() else {
            return News::None;
        };
        if !self.notification.is_credible() {
            return News::None;
        }
        let deadline = lock.missed(mark.at, mark.woke);
        let period = lock.rhythm().period;
        if self.notification.missed(mark.at, deadline, period) {
            let factor = self.notification.factor();
            News::Demand(Some(Why::MissedDeadline { factor }))
        } else {
            News::None
        }
    }

    pub(super) fn burst_declared(&mut self, burst: &Burst) -> Option<News> {
        let lock = self.state.lock().filter(|lock| lock.is_declared())?;
        let declared = self.declared.as_ref();
        let silent_since = declared.map(|declared| declared.last).unwrap_or_default();
        if burst.blocked.since(silent_since) < patience(lock.rhythm().period) {
            return Some(News::None);
        }
        self.declared = None;
        Some(self.lose(Why::SaysNoMore))
    }
}
