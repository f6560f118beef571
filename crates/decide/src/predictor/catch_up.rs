//! The reaction of every predictor to a budget that runs out: more at once, and back as soon as it
//! helped.
//!
//! A hard server (LFS++, section 3.2) makes a job that overran wait for the next period, where it
//! delays the next job in turn: with 10% of slack, an overrun of a whole budget would be felt in
//! ten jobs. So the runtime is raised at once, and the thread is back in step after one or two.
//! From then on the overrun is known by its measured size and part of the predictor's window;
//! holding the raise any longer would be paying twice.
//!
//! Not every exhaustion is an overrun. A server that is out of step with its thread (the thread was
//! in the middle of a job when it got the reservation, or it blocks several times a job) gives a
//! job the rest of one period's budget and the begin of the next one's: it runs out although there
//! is enough in each. As long as such jobs end in time, more runtime would buy nothing.

use onbeat_model::{Instant, Job, Reservation, Span};

use super::Parameters;

/// Jobs in a row that ran out and ended in time nevertheless, after which no more is raised.
const HARMLESS_MOST: u32 = 3;
/// Jobs that end late without running out, after which it is not the budget that makes them late.
const UNUSED_MOST: u32 = 8;
/// A job that runs out more often than this is not the one that was planned for: what it had is
/// doubled again, or it would never end.
const ROUNDS_MOST: u32 = 4;
/// The least that is doubled, as a share of a period. Where threads of a pool take turns, as an
/// encoder's, one that was idle has next to no budget, and would need tens of periods.
const LEAST_DOUBLED: f64 = 1.0 / 16.0;

#[derive(Clone, Copy, Debug, Default)]
pub struct CatchUp {
    raised: Option<Raise>,
    harmless: u32,
}

#[derive(Clone, Copy, Debug)]
struct Raise {
    runtime: Span,
    exhausted: Span,
    at: Instant,
    rounds: u32,
    unused: u32,
}

impl CatchUp {
    /// The budget of `held` ran out at `at`: raises by the parameters' boost, again and again, up
    /// to as many times the runtime that ran out first as they permit, or the least that is
    /// doubled.
    pub fn exhausted(&mut self, at: Instant, held: Reservation, parameters: &Parameters) {
        if self.harmless >= HARMLESS_MOST {
            return;
        }
        let factor = parameters.boost.max(1.0);
        let most = parameters.boost_most.max(factor);
        let rounds = self.raised.map_or(0, |raise| raise.rounds) + 1;
        let first = match self.raised {
            Some(raise) if !rounds.is_multiple_of(ROUNDS_MOST) => raise.exhausted,
            _ => held.runtime(),
        };
        let so_far = self.raised.map_or(Span::ZERO, |raise| raise.runtime);
        let least = held.period().scale(LEAST_DOUBLED);
        let doubled = held.runtime().max(least).scale(factor);
        let runtime = doubled.min(first.max(least).scale(most));
        self.raised = Some(Raise {
            runtime: runtime.max(so_far),
            exhausted: first,
            at,
            rounds,
            unused: 0,
        });
    }

    /// A job is done, for which `planned` was the runtime without the raise: one that ended in time
    /// and would have fitted into it ends the raise. In time is within a period of when it woke: a
    /// thread that slept before is not behind, wherever its beat is thought to be.
    pub fn job(&mut self, job: &Job, planned: Option<Span>) {
        let Some(raise) = &mut self.raised else {
            if !job.exhausted || overran(job) {
                self.harmless = 0;
            }
            return;
        };
        if job.ended < raise.at {
            return;
        }
        raise.rounds = 0;
        if overran(job) {
            self.harmless = 0;
            raise.unused += u32::from(!job.exhausted);
            if raise.unused >= UNUSED_MOST {
                self.raised = None;
            }
            return;
        }
        if job.exhausted && job.executed <= raise.exhausted {
            self.harmless += 1;
        } else if !job.exhausted {
            self.harmless = 0;
        }
        if job.exhausted || planned.is_none_or(|planned| job.executed <= planned) {
            self.raised = None;
        }
    }

    pub fn scale(&mut self, factor: f64) {
        if let Some(raise) = &mut self.raised {
            raise.runtime = raise.runtime.scale(factor);
            raise.exhausted = raise.exhausted.scale(factor);
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    #[must_use]
    pub fn over(&self, planned: Option<Span>, period: Span) -> Option<Span> {
        let raised = self.raised.map(|raise| raise.runtime);
        planned.max(raised).map(|runtime| runtime.min(period))
    }
}

pub(crate) fn overran(job: &Job) -> bool {
    job.missed() && job.ended.since(job.woke) > job.deadline.since(job.release)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::{Burst, TaskId};

    const PERIOD_US: u64 = 4000;

    fn held(runtime_us: u64) -> Reservation {
        Reservation::implicit(Span::from_us(runtime_us), Span::from_us(PERIOD_US)).unwrap()
    }

    fn boosting(boost: f64, boost_most: f64) -> Parameters {
        Parameters {
            boost,
            boost_most,
            ..Parameters::default()
        }
    }

    fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1000)
    }

    fn job(release_us: u64, ended_us: u64, executed_us: u64, exhausted: bool) -> Job {
        Job {
            ended: at(ended_us),
            exhausted,
            ..Job::of(
                &Burst::alone(
                    TaskId::recorded(1),
                    at(release_us),
                    Span::from_us(executed_us),
                ),
                at(release_us),
                at(release_us + PERIOD_US),
            )
        }
    }

    fn raised(catch_up: &CatchUp) -> Option<Span> {
        catch_up.over(None, Span::MAX)
    }

    #[test]
    fn work_that_comes_to_an_idle_thread_is_done_within_a_few_periods() {
        // A hundredth of what an even share of the work of three threads takes: 8 of 33 ms.
        let (period_us, work_us) = (33_000, 8000);
        let mut catch_up = CatchUp::default();
        let (mut runtime, mut left, mut periods) = (80, work_us, 0);
        while left > 0 && periods < 100 {
            left -= runtime.min(left);
            periods += 1;
            let held = Reservation::implicit(Span::from_us(runtime), Span::from_us(period_us));
            catch_up.exhausted(at(periods * period_us), held.unwrap(), &boosting(2.0, 4.0));
            let raised = catch_up.over(None, Span::from_us(period_us)).unwrap();
            runtime = raised.as_ns() / 1000;
        }
        assert!(periods <= 3, "{periods} periods");
    }

    #[test]
    fn a_raise_that_is_not_what_late_jobs_lack_is_given_up() {
        let mut catch_up = CatchUp::default();
        catch_up.exhausted(at(1000), held(1000), &boosting(2.0, 4.0));
        let late = |n: u64| job(n * PERIOD_US, (n + 1) * PERIOD_US + 100, 900, false);
        for n in 1..8 {
            catch_up.job(&late(n), None);
            assert!(raised(&catch_up).is_some(), "job {n}");
        }
        catch_up.job(&late(8), None);
        assert_eq!(raised(&catch_up), None);
    }

    #[test]
    fn interruptions_of_jobs_that_end_in_time_are_no_reason_for_a_raise_again_and_again() {
        let mut catch_up = CatchUp::default();
        for n in 0..3 {
            let release = n * PERIOD_US;
            catch_up.exhausted(at(release + 500), held(1000), &boosting(2.0, 4.0));
            assert!(raised(&catch_up).is_some());
            catch_up.job(&job(release, release + 2000, 900, true), None);
        }
        catch_up.exhausted(at(12_500), held(1000), &boosting(2.0, 4.0));
        assert_eq!(raised(&catch_up), None);
        catch_up.job(&job(12_000, 17_000, 900, true), None);
        catch_up.exhausted(at(17_500), held(1000), &boosting(2.0, 4.0));
        assert!(raised(&catch_up).is_some(), "now one was late: it matters");
    }
}
