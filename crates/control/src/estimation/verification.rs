//! Verifies the rhythm of a locked thread.
//!
//! A rhythm counts as soon as it is found, because a thread under load needs its reservation now.
//! Verification repeats the analysis with more bursts, at growing distances, and finds a rhythm
//! that was a chance, or has changed. After a chance, the thread must show the same rhythm several
//! times before it is locked again.

use onbeat_model::{Instant, Rhythm};

use super::analysis::Attempts;
use super::lock::{Lock, same_period};
use super::{Estimator, News, patience};
use crate::{EstimationSettings, Why};

/// The analyses in a row that must disagree with a verified period, because one in a hundred is a
/// chance; and the most that must agree after a period that was one.
const REJECTIONS: u32 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Verification {
    passed: u32,
    rejections: u32,
    needed: u32,
    confirmations: u32,
    suspect: Option<Rhythm>,
}

impl Verification {
    fn anew(needed: u32) -> Self {
        Self {
            needed,
            ..Self::default()
        }
    }
}

impl Estimator {
    pub(super) fn believe(
        &mut self,
        rhythm: Rhythm,
        now: Instant,
        settings: &EstimationSettings,
    ) -> News {
        let agrees = |other: Rhythm| same_period(other.period, rhythm.period);
        self.verification.confirmations = if self.verification.suspect.is_some_and(agrees) {
            self.verification.confirmations + 1
        } else {
            1
        };
        self.verification.suspect = Some(rhythm);
        let dormant = self.state.dormant();
        let familiar = dormant.is_some_and(|lock| agrees(lock.rhythm()));
        if self.verification.confirmations <= self.verification.needed && !familiar {
            self.analysis.attempts.again(now);
            return News::None;
        }
        let bursts = self.analysis.analyser.bursts().count();
        let heard = self.analysis.analyser.bursts();
        self.state.lock_on(|dormant| {
            let Some(mut lock) = dormant.filter(|lock| !lock.is_declared()) else {
                return Box::new(Lock::new(rhythm, heard, now, settings));
            };
            lock.resume(rhythm, now);
            lock
        });
        self.verification = Verification::anew(self.verification.needed);
        self.analysis.attempts.verify(now, 0, bursts);
        News::Locked(Why::Found {
            period: rhythm.period,
            bursts,
            confidence: rhythm.confidence,
        })
    }

    pub(super) fn verify(&mut self, found: Option<Rhythm>, now: Instant) -> News {
        let bursts = self.analysis.analyser.bursts().count();
        let Some(lock) = self.state.lock_mut() else {
            return News::None;
        };
        let former = lock.rhythm();
        let astray = lock.astray();
        match found {
            Some(rhythm) if same_period(rhythm.period, former.period) => {
                lock.confirm(rhythm);
                self.verification.rejections = 0;
                self.verification.passed += 1;
                self.analysis
                    .attempts
                    .verify(now, self.verification.passed, bursts);
                News::None
            }
            Some(rhythm) => {
                self.verification.rejections += 1;
                let too_soon = match astray {
                    None => {
                        self.verification.passed > 0 && self.verification.rejections < REJECTIONS
                    }
                    Some(since) => {
                        is_blurred(&rhythm, &former) && now.since(since) < patience(former.period)
                    }
                };
                if too_soon {
                    self.analysis.attempts.again(now);
                    return News::None;
                }
                lock.adopt(rhythm);
                self.verification = Verification::anew(self.verification.needed);
                self.analysis.attempts.verify(now, 0, bursts);
                News::Locked(Why::RateChanged {
                    from: former.period,
                    to: rhythm.period,
                })
            }
            None => {
                self.verification.rejections += 1;
                match astray {
                    Some(_) => self.analysis.failed(now),
                    None => self.analysis.attempts.again(now),
                }
                let sustained = match astray {
                    Some(since) => now.since(since) > patience(former.period),
                    None => self.verification.rejections >= REJECTIONS,
                };
                if sustained {
                    self.lose(Why::RhythmLost)
                } else {
                    News::None
                }
            }
        }
    }

    pub(super) fn lose(&mut self, why: Why) -> News {
        self.forget_rhythm();
        News::Lost(why)
    }

    pub(super) fn forget_rhythm(&mut self) {
        self.last_rhythm = self.rhythm();
        self.state.lose();
        let mut needed = self.verification.needed;
        if self.verification.passed == 0 {
            needed = (needed + 1).min(REJECTIONS);
        }
        self.verification = Verification::anew(needed);
        self.analysis.attempts = Attempts::new();
    }
}

/// True for a rhythm that fits much worse than the former one: the bursts have both the old and the
/// new rhythm.
fn is_blurred(rhythm: &Rhythm, former: &Rhythm) -> bool {
    rhythm.jitter * 20 > rhythm.period && rhythm.jitter > former.jitter * 4
}
