//! Missed deadline notifications in the place of the synchronisations that did not happen.
//!
//! A thread that is late does not sleep before its next job, so from outside the two jobs are one
//! long burst, and the period seems to have changed. A notification says that a job ended just
//! then: BEST (Banachowski, Wu and Brandt, section 3.2.1, Fig. 4) takes it for the wakeup that is
//! missing. So does this: it cuts the burst there. Under the same condition as BEST (section
//! 3.2.2): only near an expected release, so that a lying thread can only confirm the period that
//! it has.

use crate::period::COARSEST;
use crate::period::track::MEMORY;
use onbeat_model::{Burst, Instant, Rhythm};

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
mod tests {
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
