//! The worth of a missed deadline notification to an ordinary thread, which has no reservation that
//! could be raised: a bounded boost.
//!
//! After Banachowski, Wu and Brandt, sections 3.1.1 and 3.1.2, with a nice level for their tick of
//! the quantum counter:
//! 1. The boost grows with each notification, in proportion to the *block ratio*: the average share
//!    of its time that the thread spent off the run queue.
//! 2. It decays by itself, the faster the smaller the block ratio.
//! 3. It is never more than [`MOST_LEVELS`] times the block ratio, so a thread that never blocks
//!    gets nothing, and a flood of notifications no more than a few. The bound is of the present
//!    ratio: at the end of a long job, where a late one notifies, a thread has slept little.
//!
//! By 3 a thread cannot have both, a boost and more of the CPU. One that is off the run queue for a
//! share `r` of the time has `5 r` levels at most, each worth a factor of 1.25 in the kernel's
//! weights, and beside one opponent it gets `(1 - r) w / (1 + w)` of a CPU with `w = 1.25^(5 r)`: a
//! half for `r = 0`, and less for any other, even if levels are rounded. So a boost makes a thread
//! sooner, and a cheater no richer. A thread that has slept enough to deserve much and then
//! computes keeps that for as long as the average looks back. The other side: a thread that needs
//! more than its fair share never sleeps under a scheduler that is fair at each moment, and gets
//! nothing, as the paper says of a system that is overloaded; if it has a rhythm, it has a
//! reservation instead. Several that are boosted share what one could have ([`dilution`]).

use onbeat_model::{Boost, Instant, Span};

/// Nice levels of a thread that always sleeps. With 5, no ratio gives more of a CPU than none.
pub const MOST_LEVELS: f64 = 5.0;
/// Levels for each CPU that all boosted threads share.
pub const LEVELS_OF_A_CPU: f64 = 5.0;
/// A tenth of the kernel's usual slice (`sched_base_slice_ns`, 3 ms), and three times the shortest:
/// a boosted thread need not wait for the end of a longer one.
pub const SLICE: Span = Span::from_us(300);
/// Levels for each notification of a thread that always sleeps: the paper's one tick.
const STEP: f64 = 1.0;
/// The half-life of the boost of a thread that always sleeps: its notifications may be rare.
const HALF_LIFE: Span = Span::from_secs(30);
/// The time constant of the block ratio: several periods of most programs.
const MEMORY: Span = Span::from_ms(500);

/// Judges the notifications of one ordinary thread. See the module for how.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ordinary {
    block_ratio: f64,
    levels: f64,
    /// Up to when sleep and decay are accounted for.
    at: Instant,
}

impl Ordinary {
    /// The thread slept until `woke`, and then was on a run queue until `until`; what is accounted
    /// for already does not count again.
    pub fn ready(&mut self, woke: Instant, until: Instant) {
        if self.at == Instant::ZERO {
            self.at = woke;
        }
        self.pass(woke, 1.0);
        self.pass(until, 0.0);
    }

    pub fn asleep(&mut self, until: Instant) {
        self.pass(until, 1.0);
    }

    pub fn missed(&mut self) {
        self.levels = (self.levels + STEP * self.block_ratio).min(MOST_LEVELS);
    }

    /// The boost that it deserves, where it has to share it: see [`dilution`].
    #[must_use]
    pub fn boost(&self, dilution: f64) -> Option<Boost> {
        let levels = (self.levels() * dilution.clamp(0.0, 1.0))
            .round()
            .min(MOST_LEVELS);
        (levels >= 1.0).then_some(Boost {
            priority: 0,
            levels: levels as u8,
            slice: SLICE,
        })
    }

    /// The levels that it deserves if it is alone.
    #[must_use]
    pub const fn levels(&self) -> f64 {
        self.levels.min(self.most())
    }

    const fn most(&self) -> f64 {
        MOST_LEVELS * self.block_ratio
    }

    /// The time up to `until` is over, and the thread was asleep (1) or not (0).
    fn pass(&mut self, until: Instant, asleep: f64) {
        let passed = until.since(self.at);
        if passed.is_zero() {
            return;
        }
        self.at = until;
        let kept = (-passed.ratio(MEMORY)).exp();
        self.block_ratio = asleep + (self.block_ratio - asleep) * kept;
        let half_life = HALF_LIFE.scale(self.block_ratio);
        // A thread that slept for a vanishing share has a half-life below a nanosecond.
        self.levels *= if half_life.is_zero() {
            0.0
        } else {
            (-passed.ratio(half_life)).exp2()
        };
    }
}

/// The factor by which each boost shrinks if threads deserve `levels` in all, on `cpus` CPUs.
#[must_use]
pub fn dilution(levels: f64, cpus: u32) -> f64 {
    let room = LEVELS_OF_A_CPU * f64::from(cpus.max(1));
    if levels > room { room / levels } else { 1.0 }
}

#[cfg(test)]
mod tests;
