//! Jobs and period of a thread that says itself where its jobs begin and end: nothing is guessed.
//!
//! After AQuoSA's adaptive reservations (`qmgr_begin_cycle`, `qmgr_end_cycle`) and GRACE-OS's
//! interface (start with a period, finish a job).
//!
//! # The rule
//! 1. A job begins where the thread says so; if it only says where jobs end, where it woke for it,
//!    or at the last job's end if it did not sleep since.
//! 2. A job is *released* when the thread woke for it. If it did not sleep since the last job, it
//!    is behind: the job was due one period after the last one's release, but no later than it
//!    began.
//! 3. A job's execution time is all CPU time that the thread took since the last job's end, for a
//!    reservation pays for what lies between the marks, too; after a pause, since its begin.
//! 4. The period is the median distance of the last releases that followed a sleep, each divided by
//!    the jobs in between: a job that was late begins late, and says nothing of the rate. A period
//!    that is declared counts in its place; `contradiction` says that it differs.
//!
//! # Assumptions
//! 1. Marks come in order, with CPU times that do not fall. Jobs of others make no sense, and do no
//!    harm.
//! 2. The program's marks are untrusted: jobs may overlap, never end, or take no time at all. A
//!    begin in the middle of a job replaces that job. An end without a begin is a job from the last
//!    end on, but none in a thread that says where its jobs begin. A period that no reservation can
//!    serve, declared or seen, is none.

use crate::period::track::MEMORY;
use crate::period::{self, ALIKE, WINDOW_S};
use std::collections::VecDeque;

use onbeat_model::{Instant, Job, Mark, Rhythm, Said, Span};

/// No declared period is shorter: the kernel reserves for none that is
/// (`sched_deadline_period_min_us`).
const SHORTEST_DECLARED: Span = Span::from_us(100);

#[derive(Clone, Debug, Default)]
pub struct MarkedJobs {
    declared: Option<Span>,
    permille: u32,
    distances: VecDeque<Span>,
    /// The last release that followed a sleep.
    anchor: Option<Instant>,
    since_anchor: u64,
    release: Option<Instant>,
    begun: Option<OpenJob>,
    says_begins: bool,
    /// When the last job ended, and the thread's CPU time then.
    ended: Option<(Instant, Span)>,
    exhausted: bool,
}

#[derive(Clone, Copy, Debug)]
struct OpenJob {
    at: Instant,
    release: Instant,
    woke: Instant,
    executed: Span,
}

impl MarkedJobs {
    /// Takes in what the thread said; gives the job that it ends. A job whose period is not known
    /// yet has its deadline at its own end.
    pub fn hear(&mut self, mark: &Mark) -> Option<Job> {
        match mark.said {
            Said::JobBegan => {
                self.says_begins = true;
                self.begin(mark.at, mark.woke.min(mark.at), mark.executed);
                None
            }
            Said::JobEnded => self.end(mark),
            Said::RealTimeStarted { period, permille } => {
                self.declared = (!period.is_zero()).then_some(period);
                self.permille = permille;
                None
            }
            Said::RealTimeExited => {
                *self = Self::default();
                None
            }
            Said::MissedDeadline => None,
        }
    }

    pub fn exhausted(&mut self) {
        self.exhausted = true;
    }

    #[must_use]
    pub fn rhythm(&self) -> Option<Rhythm> {
        Some(Rhythm {
            period: self.period()?,
            phase: self.release?,
            jitter: self.jitter(),
            confidence: 1.0,
        })
    }

    /// The share of jobs that may be late, as the thread declared it: one less rho (GRACE-OS,
    /// section 3.1). Half of them at most.
    #[must_use]
    pub fn overruns(&self) -> Option<f64> {
        let is_share = (1..=1000).contains(&self.permille);
        is_share.then(|| 1.0 - (f64::from(self.permille) / 1000.0).max(0.5))
    }

    /// When the job at hand, or else the last one, is to be done.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        Some(self.release? + self.period()?)
    }

    fn begin(&mut self, at: Instant, woke: Instant, executed: Span) {
        let slept = self.ended.is_none_or(|(ended, _)| woke >= ended);
        let release = if slept {
            woke
        } else {
            let due = self.deadline().unwrap_or(at);
            due.max(self.release.unwrap_or(due)).min(at)
        };
        self.since_anchor += 1;
        if slept {
            if let Some(anchor) = self.anchor
                && release > anchor
            {
                if self.distances.len() == MEMORY as usize / 2 - 1 {
                    self.distances.pop_front();
                }
                let distance = release.since(anchor) / self.since_anchor;
                self.distances.push_back(distance);
            }
            self.anchor = Some(release);
            self.since_anchor = 0;
        }
        self.release = Some(release);
        self.exhausted = false;
        self.begun = Some(OpenJob {
            at,
            release,
            woke,
            executed,
        });
    }

    fn end(&mut self, mark: &Mark) -> Option<Job> {
        if self.begun.is_none() && !self.says_begins {
            let (ended, executed) = self.ended.replace((mark.at, mark.executed))?;
            let began = mark.woke.max(ended).min(mark.at);
            self.ended = Some((ended, executed));
            self.begin(began, mark.woke.min(began), executed);
        }
        let begun = self.begun.take()?;
        let pause = self.period().unwrap_or_default() * 2;
        let since = match self.ended.replace((mark.at, mark.executed)) {
            Some((ended, executed)) if begun.at.since(ended) < pause => executed,
            _ => begun.executed,
        };
        Some(Job {
            task: mark.task,
            release: begun.release,
            woke: begun.woke.max(begun.release).min(begun.at),
            started: begun.at,
            ended: mark.at,
            executed: mark.executed - since,
            waited: Span::ZERO,
            deadline: self
                .period()
                .map_or(mark.at, |period| begun.release + period),
            bursts: 1,
            exhausted: self.exhausted,
        })
    }

    fn period(&self) -> Option<Span> {
        self.declared.filter(is_served).or_else(|| self.seen())
    }

    /// The declared period, and the one that the marked jobs have, if they differ.
    #[must_use]
    pub fn contradiction(&self) -> Option<(Span, Span)> {
        let (declared, seen) = (self.declared.filter(is_served)?, self.seen()?);
        (declared.abs_diff(seen).ratio(seen) > ALIKE).then_some((declared, seen))
    }

    fn seen(&self) -> Option<Span> {
        if self.distances.len() < period::enough_for_a_line() {
            return None;
        }
        median(self.distances.iter().copied()).filter(is_served)
    }

    fn jitter(&self) -> Span {
        let Some(middle) = median(self.distances.iter().copied()) else {
            return Span::ZERO;
        };
        median(self.distances.iter().map(|d| d.abs_diff(middle))).unwrap_or_default()
    }
}

/// Jobs of a period that is longer than any window are not waited for.
fn is_served(period: &Span) -> bool {
    (SHORTEST_DECLARED..=Span::from_secs(WINDOW_S)).contains(period)
}

fn median(spans: impl Iterator<Item = Span>) -> Option<Span> {
    let mut spans: Vec<Span> = spans.collect();
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied()
}

#[cfg(test)]
mod tests;
