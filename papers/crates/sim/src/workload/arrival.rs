//! When jobs are released.

use onbeat_model::{Instant, Span};
use rand::Rng;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::SharedList;

#[derive(Clone, Debug)]
pub enum Arrival {
    /// On the beats of a period.
    Periodic {
        period: Span,
        /// The next beat; at first, the phase.
        next: Instant,
        /// A job can begin up to that much after its beat, evenly distributed.
        jitter: Span,
    },
    /// On the beats of a period, but where a job was late, the next is released when it is done,
    /// and the beat goes on from there: a program that shows frame after frame without a clock.
    Paced {
        /// From beat to beat.
        period: Span,
        /// The next beat; at first, the phase.
        next: Instant,
        /// The timer that it sleeps on fires at multiples of this alone, as that of a kernel whose
        /// clock ticks; zero: exactly.
        timer: Span,
    },
    /// At random, independently of each other, at this mean interval (a Poisson process).
    Poisson {
        mean: Span,
        /// The release before the next one.
        last: Instant,
    },
    /// This time after the job before was done: a program that sleeps for a time, not until one.
    After {
        pause: Span,
        first: Option<Instant>,
    },
    Always,
    Recorded {
        /// The times, in ascending order.
        releases: SharedList<Instant>,
        over: usize,
    },
}

impl Arrival {
    /// Beats every `period`, the first at time zero.
    pub const fn periodic(period: Span) -> Self {
        Self::Periodic {
            period,
            next: Instant::ZERO,
            jitter: Span::ZERO,
        }
    }

    pub const fn paced(period: Span) -> Self {
        Self::Paced {
            period,
            next: Instant::ZERO,
            timer: Span::ZERO,
        }
    }

    pub const fn period(&self) -> Option<Span> {
        match self {
            Self::Periodic { period, .. } | Self::Paced { period, .. } => Some(*period),
            _ => None,
        }
    }

    /// Whether the task that ended its last job at `ended` sets a timer for `release`. One whose
    /// jobs are late at random, or that was recorded, waits for something else.
    pub(super) fn sets_timer(&self, release: Instant, ended: Instant) -> bool {
        match self {
            Self::Periodic { jitter, .. } => jitter.is_zero(),
            Self::Paced { .. } => release > ended,
            Self::Poisson { .. } | Self::After { .. } => true,
            Self::Always | Self::Recorded { .. } => false,
        }
    }

    pub(super) fn next(
        &mut self,
        ended: Instant,
        random: &mut Xoshiro256PlusPlus,
    ) -> Option<(Instant, Instant)> {
        let release = match self {
            Self::Periodic {
                period,
                next,
                jitter,
            } => {
                let release = *next;
                *next = release + *period;
                if !jitter.is_zero() {
                    let late = Span::from_ns(random.random_range(0..=jitter.as_ns()));
                    return Some((release, release + late));
                }
                release
            }
            Self::Paced {
                period,
                next,
                timer,
            } => {
                let release = ended.max(*next);
                *next = release + *period;
                if release > ended && !timer.is_zero() {
                    let ticks = release.as_ns().div_ceil(timer.as_ns());
                    return Some((release, Instant::ZERO + *timer * ticks));
                }
                release
            }
            Self::Poisson { mean, last } => {
                let apart: f64 = Exp1.sample(random);
                *last = *last + mean.scale(apart);
                *last
            }
            Self::After { pause, first } => first.take().unwrap_or(ended + *pause),
            Self::Always => ended,
            Self::Recorded { releases, over } => {
                let release = *releases.get(*over)?;
                *over += 1;
                release
            }
        };
        Some((release, release))
    }
}
