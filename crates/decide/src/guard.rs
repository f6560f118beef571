//! The guard: whether an application is better off with its means than a rung below. One for all
//! rungs, and an input of the [ladder](crate::ladder).
//!
//! Waits tell: those of late jobs, or of all wakeups if it has no period. While it is in time, the
//! means works, and a pause to compare would make it late: there is none. Where it waits all the
//! same, little is at stake: it is a rung lower for a moment, and on its rung again. If it waited
//! no longer without, before and after, it stays lower. Load that changes once is in one of these.

use onbeat_model::{Instant, Span};

use crate::ladder::{Rung, RungWhy};

/// Wakeups in a sample: where three of ten wait and none would, 32 tell it.
const ENOUGH: u32 = 32;
/// The longest moment without means; a twentieth is the shortest time of a sample.
const MOMENT: Span = Span::from_secs(2);
/// Less on average is no wait for others: a hog has a CPU for 3 ms or more at a time.
const WAITS: Span = Span::from_ms(4);
/// No comparison before: as an application begins, much is at stake.
const FIRST: Span = Span::from_secs(5);
/// The first time between two comparisons, and on a lower rung; each is twice the last, up to 32.
const PAUSE: Span = Span::from_secs(20);

#[derive(Clone, Copy, Debug, Default)]
pub struct Guard {
    step: Step,
    since: Instant,
    wakeups: u32,
    waited: Span,
    not_before: Instant,
    comparisons: u32,
}

/// With the rung below, and how long members wait with the means, or without, or its end.
#[derive(Clone, Copy, Debug, Default)]
enum Step {
    #[default]
    With,
    Without(Rung, Span),
    Again(Span),
    Down(Rung, Instant),
}

impl Guard {
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            since: now,
            not_before: now + FIRST,
            ..Self::default()
        }
    }

    /// A member woke, or its job ended, which waited so long for a CPU.
    pub fn woke(&mut self, waited: Span) {
        self.wakeups += 1;
        self.waited += waited;
    }

    #[must_use]
    pub const fn most(&self) -> Option<(Rung, RungWhy)> {
        match self.step {
            Step::Without(below, _) => Some((below, RungWhy::Compares)),
            Step::Down(below, _) => Some((below, RungWhy::NoBetter)),
            Step::With | Step::Again(_) => None,
        }
    }

    /// Looks at the waits up to `now`; the application's highest member is on `rung`. True if the
    /// guard leaves another rung from now on.
    pub fn review(&mut self, rung: Rung, now: Instant) -> bool {
        let (over, before) = (now.since(self.since), self.most());
        let is_full = self.wakeups >= ENOUGH && over >= MOMENT / 20;
        let mean = is_full.then(|| self.waited / u64::from(self.wakeups));
        let is_up = rung != Rung::Ordinary;
        let pause = PAUSE.doubled(self.comparisons, PAUSE * 32);
        self.step = match (self.step, mean) {
            (Step::Down(_, until), _) if now < until => return false,
            (Step::With, Some(with)) if is_up && with >= WAITS && now >= self.not_before => {
                (self.not_before, self.comparisons) = (now + pause, self.comparisons + 1);
                Step::Without(rung.below(), with)
            }
            (Step::Without(_, with), Some(without)) if without <= with => Step::Again(without),
            (Step::Again(without), Some(with)) if is_up && without <= with && with >= WAITS => {
                Step::Down(rung.below(), now + pause)
            }
            (_, None) if over < MOMENT && (is_up || before.is_some()) => return false,
            _ => Step::With,
        };
        (self.since, self.wakeups, self.waited) = (now, 0, Span::ZERO);
        self.most() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times in ms at which the guard left other rungs, and which, in `seconds` in which a
    /// member on `rung` wakes each 10 ms, and waits for `waits_us` with its means, or without.
    fn left(
        rung: Rung,
        seconds: u64,
        waits_us: impl Fn(bool, u64) -> u64,
    ) -> Vec<(u64, Option<(Rung, RungWhy)>)> {
        let mut guard = Guard::new(Instant::ZERO);
        let mut left = Vec::new();
        for ms in (0..seconds * 1000).step_by(10) {
            let most = guard.most();
            let rung = most.map_or(rung, |(most, _)| most.min(rung));
            guard.woke(Span::from_us(waits_us(most.is_none(), ms)));
            if guard.review(rung, Instant::ZERO + Span::from_ms(ms)) {
                left.push((ms, guard.most()));
            }
        }
        left
    }

    #[test]
    fn a_means_that_is_no_better_ends_for_a_pause_that_doubles() {
        for (rung, below) in [
            (Rung::Reserved, Rung::Raised),
            (Rung::Raised, Rung::Ordinary),
        ] {
            let (compares, no_better) = (
                Some((below, RungWhy::Compares)),
                Some((below, RungWhy::NoBetter)),
            );
            let all = left(rung, 130, |is_with, _| if is_with { 6000 } else { 3000 });
            let mosts: Vec<_> = all.iter().map(|&(_, most)| most).collect();
            let once = [compares, None, no_better, None];
            assert_eq!(mosts[..8], [once, once].concat(), "{all:?}");
            assert!((5000..6000).contains(&all[0].0), "{all:?}");
            assert!(all[2].0 - all[0].0 < 1000, "a moment: {all:?}");
            assert_eq!(all[3].0 - all[2].0, 40_000);
            assert_eq!(all[7].0 - all[6].0, 80_000);
        }
    }

    #[test]
    fn load_that_rises_or_falls_once_ends_no_means() {
        let is_ended = |all: Vec<(u64, Option<(Rung, RungWhy)>)>| {
            let no_better = Some((Rung::Ordinary, RungWhy::NoBetter));
            all.iter().any(|&(_, most)| most == no_better)
        };
        for changes in (4900..6500).step_by(10) {
            for (before, after) in [(5000, 19_000), (19_000, 5000), (9000, 0)] {
                let load = |is_with, ms| {
                    let waits = if ms < changes { before } else { after };
                    if is_with { waits } else { waits * 5 / 4 }
                };
                assert!(!is_ended(left(Rung::Raised, 10, load)), "{changes}");
            }
        }
    }
}
