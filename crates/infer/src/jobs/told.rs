//! Jobs and period of a thread that says itself where its jobs begin and end: nothing is guessed.
//!
//! After AQuoSA's adaptive reservations (`qmgr_begin_cycle`, `qmgr_end_cycle`) and GRACE-OS's interface
//! (start with a period, finish a job).
//!
//! # The rule
//! 1. A job begins where the thread says so; if it only says where jobs end, where it woke for it, or
//!    at the last job's end if it did not sleep since.
//! 2. A job is *released* when the thread woke for it. If it did not sleep since the last job, it is behind:
//!    the job was due one period after the last one's release, but no later than it began.
//! 3. A job's execution time is all CPU time that the thread took since the last job's end, for a
//!    reservation pays for what lies between the marks, too; after a pause, since its begin.
//! 4. The period is the median distance of the last releases that followed a sleep, each divided by the
//!    jobs in between: a job that was late begins late, and says nothing of the rate. If that agrees with the
//!    period the program told, the told one counts, being exact; if it does not, what is seen counts.
//!
//! # Assumptions
//! 1. Marks come in order, with CPU times that do not fall. Jobs of others make no sense, and do no harm.
//! 2. What is said is untrusted: jobs may overlap, never end, or take no time at all. A begin in the middle
//!    of a job replaces that job; an end without a begin is a job from the last end on.

use std::collections::VecDeque;

use onbeat_model::{Instant, Job, Mark, Rhythm, Said, Span};

/// So many distances between releases are remembered.
const MEMORY: usize = 15;
/// From so many on the period is known without being told.
const ENOUGH: usize = 3;
/// No further than this share apart: the same period.
const SAME: f64 = 0.05;

/// Cuts one thread's marks into jobs. See the module for the rule.
#[derive(Clone, Debug, Default)]
pub struct Told {
    declared: Option<Span>,
    permille: u32,
    distances: VecDeque<Span>,
    /// The last release that followed a sleep.
    anchor: Option<Instant>,
    /// Releases since, itself excluded.
    since_anchor: u64,
    release: Option<Instant>,
    begun: Option<Begun>,
    /// When the last job ended, and the thread's CPU time then.
    ended: Option<(Instant, Span)>,
    exhausted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Instant,
    release: Instant,
    woke: Instant,
    executed: Span,
}

impl Told {
    /// Takes in what the thread said; gives the job that it ends. A job whose period is not known yet
    /// has its deadline at its own end.
    pub fn hear(&mut self, mark: &Mark) -> Option<Job> {
        match mark.said {
            Said::JobBegan => {
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

    /// The thread's budget ran out: the job at hand was interrupted.
    pub fn exhausted(&mut self) {
        self.exhausted = true;
    }

    /// The rhythm that the thread told; none as long as its period is unknown.
    #[must_use]
    pub fn rhythm(&self) -> Option<Rhythm> {
        Some(Rhythm {
            period: self.period()?,
            phase: self.release?,
            jitter: self.jitter(),
            confidence: 1.0,
        })
    }

    /// The share of jobs that may be late, as the thread told it: one less rho (GRACE-OS, section 3.1).
    #[must_use]
    pub fn overruns(&self) -> Option<f64> {
        let is_share = (1..=1000).contains(&self.permille);
        is_share.then(|| 1.0 - f64::from(self.permille) / 1000.0)
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
                if self.distances.len() == MEMORY {
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
        self.begun = Some(Begun {
            at,
            release,
            woke,
            executed,
        });
    }

    fn end(&mut self, mark: &Mark) -> Option<Job> {
        if self.begun.is_none() {
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
            deadline: self
                .period()
                .map_or(mark.at, |period| begun.release + period),
            bursts: 1,
            exhausted: self.exhausted,
        })
    }

    fn period(&self) -> Option<Span> {
        let seen = self.seen();
        match (self.declared, seen) {
            (Some(told), Some(seen)) if told.abs_diff(seen).ratio(seen) > SAME => Some(seen),
            (told, seen) => told.or(seen),
        }
    }

    fn seen(&self) -> Option<Span> {
        if self.distances.len() < ENOUGH {
            return None;
        }
        median(self.distances.iter().copied()).filter(|period| !period.is_zero())
    }

    /// The median distance from the median distance.
    fn jitter(&self) -> Span {
        let Some(middle) = median(self.distances.iter().copied()) else {
            return Span::ZERO;
        };
        median(self.distances.iter().map(|d| d.abs_diff(middle))).unwrap_or_default()
    }
}

fn median(spans: impl Iterator<Item = Span>) -> Option<Span> {
    let mut spans: Vec<Span> = spans.collect();
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::TaskId;

    /// Marks in milliseconds.
    fn mark(said: Said, at: u64, woke: u64, executed: u64) -> Mark {
        Mark {
            at: ms(at),
            task: TaskId::recorded(1),
            woke: ms(woke),
            executed: Span::from_ms(executed),
            said,
        }
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_ms(ms)
    }

    fn start(period: u64) -> Mark {
        let period = Span::from_ms(period);
        let said = Said::RealTimeStarted {
            period,
            permille: 950,
        };
        mark(said, 1, 0, 0)
    }

    /// One job from its wakeup for `long`, beginning a millisecond after the wakeup.
    fn job(told: &mut Told, woke: u64, long: u64, executed: &mut u64) -> Job {
        let begun = mark(Said::JobBegan, woke + 1, woke, *executed);
        assert_eq!(told.hear(&begun), None);
        *executed += long;
        let ended = mark(Said::JobEnded, woke + 1 + long, woke, *executed);
        told.hear(&ended).expect("it began")
    }

    #[test]
    fn jobs_lie_between_the_marks_and_are_released_by_the_wakeup() {
        let (mut told, mut cpu) = (Told::default(), 100);
        for n in 0..20 {
            let job = job(&mut told, 1000 + 40 * n, 7, &mut cpu);
            assert_eq!(job.release, ms(1000 + 40 * n));
            assert_eq!(job.executed, Span::from_ms(7));
            assert_eq!(job.response_time(), Span::from_ms(8));
            if n >= 3 {
                assert_eq!(job.deadline, ms(1040 + 40 * n));
            }
        }
        let rhythm = told.rhythm().unwrap();
        assert_eq!(rhythm.period, Span::from_ms(40));
        assert_eq!((rhythm.jitter, rhythm.confidence), (Span::ZERO, 1.0));
    }

    #[test]
    fn a_thread_that_is_behind_keeps_its_period_and_its_deadlines() {
        let (mut told, mut cpu) = (Told::default(), 0);
        for n in 0..5 {
            job(&mut told, 40 * n, 10, &mut cpu);
        }
        // The sixth job lasts until 290; the next two follow without sleep.
        job(&mut told, 200, 89, &mut cpu);
        for (begin, release) in [(290, 240), (300, 280)] {
            assert_eq!(told.hear(&mark(Said::JobBegan, begin, 200, cpu)), None);
            cpu += 9;
            let ended = told
                .hear(&mark(Said::JobEnded, begin + 9, 200, cpu))
                .unwrap();
            assert_eq!(
                (ended.release, ended.deadline),
                (ms(release), ms(release + 40))
            );
            assert_eq!(ended.executed, Span::from_ms(9));
        }
        let caught_up = job(&mut told, 320, 10, &mut cpu);
        assert_eq!(caught_up.release, ms(320));
        assert_eq!(told.rhythm().unwrap().period, Span::from_ms(40));
    }

    #[test]
    fn a_period_that_is_told_counts_at_once_and_only_as_long_as_it_agrees_with_what_is_seen() {
        let (mut told, mut cpu) = (Told::default(), 0);
        told.hear(&start(40));
        assert_eq!(told.rhythm(), None);
        job(&mut told, 100, 5, &mut cpu);
        assert_eq!(told.rhythm().unwrap().period, Span::from_ms(40));

        assert_eq!(told.overruns().map(|o| (o * 1000.0).round()), Some(50.0));

        let (mut liar, mut cpu) = (Told::default(), 0);
        liar.hear(&start(1));
        for n in 0..5 {
            job(&mut liar, 100 + 40 * n, 5, &mut cpu);
        }
        assert_eq!(liar.rhythm().unwrap().period, Span::from_ms(40));
    }

    #[test]
    fn a_thread_that_says_only_where_jobs_end_has_jobs_from_its_wakeups() {
        let mut told = Told::default();
        let ended = |n: u64| mark(Said::JobEnded, 40 * n + 8, 40 * n, 7 * n);
        assert_eq!(told.hear(&ended(1)), None, "the first is only a beginning");
        for n in 2..10 {
            let job = told.hear(&ended(n)).unwrap();
            assert_eq!(job.release, ms(40 * n));
            assert_eq!(job.executed, Span::from_ms(7));
        }
        assert_eq!(told.rhythm().unwrap().period, Span::from_ms(40));
    }

    #[test]
    fn what_a_thread_does_between_its_jobs_counts_but_not_after_a_pause() {
        let (mut told, mut cpu) = (Told::default(), 0);
        told.hear(&start(40));
        let took = |told: &mut Told, woke, cpu: &mut u64| {
            *cpu += 3;
            job(told, woke, 5, cpu).executed
        };
        assert_eq!(took(&mut told, 100, &mut cpu), Span::from_ms(5));
        assert_eq!(took(&mut told, 140, &mut cpu), Span::from_ms(8));
        assert_eq!(took(&mut told, 9000, &mut cpu), Span::from_ms(5));
    }

    #[test]
    fn an_interrupted_job_says_so_and_the_next_does_not() {
        let mut told = Told::default();
        told.hear(&mark(Said::JobBegan, 1, 0, 0));
        told.exhausted();
        let interrupted = told.hear(&mark(Said::JobEnded, 9, 0, 5)).unwrap();
        assert!(interrupted.exhausted);
        let mut cpu = 5;
        assert!(!job(&mut told, 40, 5, &mut cpu).exhausted);
    }

    #[test]
    fn a_wakeup_after_its_mark_and_marks_out_of_order_do_no_harm() {
        let mut told = Told::default();
        let begin = |at, woke| mark(Said::JobBegan, at, woke, 0);
        let end = |at, woke| mark(Said::JobEnded, at, woke, 0);
        for (begun, ended) in [
            (begin(10, 1000), end(11, 1000)),
            (begin(12, 5), end(13, 5)),
            (begin(9000, 8000), end(9001, 8000)),
            (begin(3, 2), end(4, 2)),
        ] {
            told.hear(&begun);
            let job = told.hear(&ended).unwrap();
            assert!(job.release <= job.started && job.started <= job.ended);
        }
        told.hear(&end(5, 7000));
        told.hear(&end(6, 7000));
    }

    #[test]
    fn whatever_is_said_jobs_are_possible() {
        let mut told = Told::default();
        let mut x: u64 = 3;
        let (mut at, mut cpu) = (0, 0);
        for _ in 0..20_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            at += x >> 60;
            cpu += x >> 62;
            let said = match x >> 40 & 7 {
                0..=2 => Said::JobBegan,
                3..=5 => Said::JobEnded,
                6 => Said::RealTimeStarted {
                    period: Span::from_ns(x >> 20),
                    permille: 0,
                },
                _ if x >> 50 & 15 == 0 => Said::RealTimeExited,
                _ => Said::MissedDeadline,
            };
            let woke = at.saturating_sub(x >> 30 & 31);
            if let Some(job) = told.hear(&mark(said, at, woke, cpu)) {
                assert!(
                    job.release <= job.started && job.started <= job.ended,
                    "{job:?}"
                );
                assert!(
                    job.woke <= job.started && job.deadline >= job.release,
                    "{job:?}"
                );
            }
            if let Some(rhythm) = told.rhythm() {
                assert!(!rhythm.period.is_zero());
            }
        }
    }
}
