//! Job separator: cuts a periodic thread's bursts into jobs, so that misses are seen from outside.
//!
//! # The rule
//! Let the beats be the releases of the [`Rhythm`], `P` its period, and the *slack* three times its
//! jitter, but at least `P/50` and at most `P/8`.
//!
//! 1. A burst's *own beat* is the last one at or before its wakeup plus the slack: a job that wakes
//!    slightly early belongs to the coming beat.
//! 2. A burst whose own beat is that of the job at hand belongs to that job, however long it lasts:
//!    a burst that runs past the next release is still the earlier job, which is then late.
//! 3. Any other burst ends the job at hand and begins the job of its own beat. Beats in between had
//!    no job: the thread skipped them, or did their work inside the long burst.
//! 4. Except while the thread catches up: if the job at hand ended after the next release, and the
//!    thread then slept no longer than the slack, the burst is the job of that next release. So the
//!    overdue jobs follow each other, each as late as it is, until the thread sleeps again or has
//!    reached its own beat.
//!
//! # Assumptions
//! 1. The bursts are one thread's, in the order of their wakeups.
//! 2. While it catches up, one burst is one job.
//! 3. A thread that finds its next timer already expired does not block, so several overdue jobs
//!    may hide in one burst. From outside they are one job, released when the first was, with the
//!    execution time of all; its tardiness tells how far the thread was behind.

mod marked;

use onbeat_model::{Burst, Instant, Job, Rhythm, Span};

use crate::period::track::{MEMORY, narrowest_gate};
use crate::period::{COARSEST, FAR};

pub use marked::MarkedJobs;

#[derive(Clone, Debug)]
pub struct Separator {
    rhythm: Rhythm,
    slack: Span,
    job: Option<Job>,
}

impl Separator {
    #[must_use]
    pub fn new(rhythm: Rhythm) -> Self {
        Self {
            rhythm,
            slack: slack(&rhythm),
            job: None,
        }
    }

    pub fn hear(&mut self, burst: &Burst) -> Option<Job> {
        let own = self.rhythm.release_before(burst.woke + self.slack);
        let release = match &mut self.job {
            None => own,
            Some(job) if own <= job.release + self.rhythm.period / 2 => {
                job.ended = job.ended.max(burst.blocked);
                job.executed += burst.executed;
                job.waited += burst.waited();
                job.bursts = job.bursts.saturating_add(1);
                job.exhausted |= burst.exhausted;
                return None;
            }
            Some(job) => {
                let next = self
                    .rhythm
                    .nearest_release(job.release + self.rhythm.period);
                let overran = job.ended > next.0;
                if overran && burst.woke.since(job.ended) <= self.slack {
                    next.0
                } else {
                    own
                }
            }
        };
        self.job
            .replace(Job::of(burst, release, release + self.rhythm.period))
    }

    /// Cuts along the beats of `rhythm` from now on: the tracked rhythm drifts, or has changed. The
    /// job at hand keeps its release and deadline.
    pub fn retune(&mut self, rhythm: Rhythm) {
        self.rhythm = rhythm;
        self.slack = slack(&rhythm);
    }

    /// The CPUs have another speed now, at which what the job at hand has done so far would have
    /// taken `factor` times as long: so a job's cycles are its execution time, whatever speeds it
    /// had (GRACE-OS, section 2.2).
    pub fn speed_changed(&mut self, factor: f64) {
        if let Some(job) = &mut self.job {
            job.executed = job.executed.scale(factor);
        }
    }

    pub fn finish(&mut self) -> Option<Job> {
        self.job.take()
    }
}

/// How much before its beat a job may wake: most of its jitter, but never so much that a late burst
/// of the job before would be taken for it.
fn slack(rhythm: &Rhythm) -> Span {
    rhythm
        .jitter
        .scale(FAR)
        .max(rhythm.period.scale(narrowest_gate()))
        .min(rhythm.period / (2 * COARSEST as u64))
}

// A thread that is late does not sleep before its next job, so from outside the two jobs are one
// long burst, and the period seems to have changed. A notification says that a job ended just then:
// BEST (Banachowski, Wu and Brandt, section 3.2.1, Fig. 4) takes it for the wakeup that is missing.
// So does this: it cuts the burst there, under the same condition (section 3.2.2): only near an
// expected release, so that a lying thread can only confirm the period that it has.

#[derive(Clone, Debug, Default)]
pub struct Substitutes {
    cuts: Vec<Instant>,
}

impl Substitutes {
    /// The thread, of this `rhythm`, says at `at` in a burst that woke at `woke` that it missed a
    /// deadline.
    pub fn missed(&mut self, at: Instant, woke: Instant, rhythm: &Rhythm) {
        self.cuts.retain(|&cut| cut > woke);
        let (release, late) = rhythm.nearest_release(at);
        let is_near = late.unsigned_abs() <= (rhythm.period / COARSEST as u64).as_ns();
        let previous = self.cuts.last().copied().unwrap_or(woke);
        let is_next = release.since(previous) >= rhythm.period / 2;
        if is_near && is_next && self.cuts.len() < 2 * MEMORY as usize {
            self.cuts.push(at);
        }
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    /// Cuts the burst that has ended at the notifications said in it. The pieces share its
    /// execution time by their lengths.
    pub fn pieces(&mut self, burst: &Burst) -> Vec<Burst> {
        let mut pieces = Vec::with_capacity(self.cuts.len() + 1);
        let mut rest = *burst;
        for cut in self.cuts.drain(..) {
            if cut <= rest.first_ran || cut >= rest.blocked {
                continue;
            }
            let share = cut
                .since(rest.first_ran)
                .ratio(rest.blocked.since(rest.first_ran));
            let executed = rest.executed.scale(share).min(rest.executed);
            pieces.push(Burst {
                blocked: cut,
                executed,
                ..rest
            });
            rest = Burst {
                woke: cut,
                first_ran: cut,
                executed: rest.executed - executed,
                preempted: 0,
                exhausted: false,
                expiry: None,
                ..rest
            };
        }
        pieces.push(rest);
        pieces
    }
}

#[must_use]
pub fn deadline(rhythm: &Rhythm, woke: Instant) -> Instant {
    rhythm.nearest_release(woke).0 + rhythm.period
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod substitutes_tests {
    use super::*;
    use onbeat_model::{Span, TaskId};

    const RHYTHM: Rhythm = Rhythm {
        period: Span::from_ms(40),
        phase: Instant::ZERO,
        jitter: Span::ZERO,
        confidence: 1.0,
    };

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_ms(ms)
    }

    fn burst(woke: u64, blocked: u64, executed: u64) -> Burst {
        Burst {
            task: TaskId::recorded(1),
            woke: ms(woke),
            first_ran: ms(woke),
            blocked: ms(blocked),
            executed: Span::from_ms(executed),
            preempted: 2,
            waker: 0,
            exhausted: true,
            expiry: None,
        }
    }

    #[test]
    fn what_is_said_far_from_a_release_or_again_cuts_nothing() {
        let mut substitutes = Substitutes::default();
        for at in [3, 20, 22, 45, 46, 47, 60] {
            substitutes.missed(ms(at), ms(0), &RHYTHM);
        }
        assert_eq!(substitutes.pieces(&burst(0, 70, 70)).len(), 2);
        substitutes.missed(ms(125), ms(80), &RHYTHM);
        substitutes.missed(ms(245), ms(200), &RHYTHM);
        let later = burst(200, 250, 50);
        assert_eq!(
            substitutes.pieces(&later).len(),
            2,
            "the first was of another burst"
        );
    }

    #[test]
    fn the_pieces_are_the_burst_whatever_is_said() {
        let mut x: u64 = 9;
        let mut substitutes = Substitutes::default();
        for _ in 0..2000 {
            for _ in 0..8 {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                substitutes.missed(ms(x >> 55), ms(x >> 40 & 127), &RHYTHM);
            }
            let whole = burst(x >> 40 & 127, (x >> 40 & 127) + (x >> 55), x >> 56);
            let pieces = substitutes.pieces(&whole);
            let executed: Span = pieces.iter().map(|piece| piece.executed).sum();
            assert_eq!(executed, whole.executed);
            assert_eq!(pieces[0].woke, whole.woke);
            assert_eq!(pieces[pieces.len() - 1].blocked, whole.blocked);
            assert!(pieces.windows(2).all(|p| p[0].blocked == p[1].woke));
        }
    }
}
