//! The rhythm that a thread shows by the times for which it sets its timers.
//!
//! A thread that sleeps until absolute times, or on a timer with an interval, asks for one release
//! after the other. The expiries lie on a grid to the nanosecond, however late the thread wakes or
//! asks, so three of them are enough. The model is a line, release number to expiry, from which
//! rounding takes an expiry at most 1 ns away.
//!
//! The alternative is a thread that sleeps for a time, or until a time of its own choice. Each
//! expiry then has the time in it at which the thread asked, and that differs by 1 us at least. The
//! confidence is one minus the probability that such expiries lie on a grid, for as many grids as
//! were tried.

use crate::period::{self, EXACT_NS, LONGEST_NS, SHORTEST_NS};
use onbeat_model::{Burst, Instant, Rhythm, Span};

/// An interval that is no whole number of nanoseconds puts each expiry less than this away.
const ROUNDING_NS: u128 = 1;
/// The share of times that are as near to a grid as rounding. The calls, interrupts and cache
/// misses between a wakeup and the next sleep differ by a microsecond at least, in programs that do
/// nothing else.
fn by_chance() -> f64 {
    (2 * ROUNDING_NS + 1) as f64 / EXACT_NS
}

/// How many expiries are looked at: among seven, four gaps may be too long. A late thread leaves
/// beats out, and still shows its grid and not a multiple of it.
fn most() -> usize {
    2 * period::enough_for_a_line() + 1
}

/// The rhythm of the last expiries among `bursts`, which are one thread's in the order of their
/// wakeups; none if these are not on a grid.
///
/// The phase is the last expiry; the jitter, how late the timers woke the thread at best.
pub fn rhythm(bursts: impl DoubleEndedIterator<Item = Burst>) -> Option<Rhythm> {
    let mut late = Span::MAX;
    let mut last: Vec<u64> = Vec::with_capacity(most());
    for burst in bursts.rev() {
        let Some(expiry) = burst.expiry else {
            continue;
        };
        if last.last() == Some(&expiry.as_ns()) {
            continue;
        }
        late = late.min(burst.woke.since(expiry));
        last.push(expiry.as_ns());
        if last.len() == most() {
            break;
        }
    }
    // More expiries say more about the grid, so they come first.
    let tried = (last.len() + 1).saturating_sub(period::enough_for_a_line()) as f64;
    let (grid, count) = (period::enough_for_a_line()..=last.len())
        .rev()
        .find_map(|count| Some((Grid::through(last.get(..count)?)?, count)))?;
    let by_chance = by_chance().powi(i32::try_from(count - 2).ok()?) * grid.ways(count) * tried;
    Some(Rhythm {
        period: Span::from_ns(u64::try_from((grid.span + grid.beats / 2) / grid.beats).ok()?),
        phase: Instant::from_ns(*last.first()?),
        jitter: late,
        confidence: (1.0 - by_chance).max(0.0),
    })
}

/// A grid through expiries: a number of beats in a span of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grid {
    span: u128,
    beats: u128,
}

impl Grid {
    /// The grid through `expiries`, latest first, whose shortest gap is one beat.
    fn through(expiries: &[u64]) -> Option<Self> {
        let gaps = || expiries.windows(2).map(|w| w[0].checked_sub(w[1]));
        let beat = gaps().collect::<Option<Vec<u64>>>()?.into_iter().min()?;
        if !(SHORTEST_NS..=LONGEST_NS).contains(&(beat as f64)) {
            return None;
        }
        let (first, last) = (*expiries.last()?, *expiries.first()?);
        let beats_to =
            |expiry: u64| (u128::from(expiry - first) + u128::from(beat) / 2) / u128::from(beat);
        let grid = Self {
            span: (last - first).into(),
            beats: beats_to(last),
        };
        let left_out = grid.beats - (expiries.len() as u128 - 1);
        let is_met = |&expiry: &u64| {
            let off = u128::from(expiry - first) * grid.beats;
            off.abs_diff(beats_to(expiry) * grid.span) <= ROUNDING_NS * grid.beats
        };
        (left_out <= (expiries.len() - period::enough_for_a_line()) as u128
            && expiries.iter().all(is_met))
        .then_some(grid)
    }

    /// In how many ways `count` expiries, the first and the last among them, can lie on as many
    /// beats.
    fn ways(&self, count: usize) -> f64 {
        let inner = count as u128 - 2;
        (1..=inner).fold(1.0, |ways, i| {
            ways * (self.beats - 1 - inner + i) as f64 / i as f64
        })
    }
}

#[cfg(test)]
mod tests;
