//! From bursts to beats: is this thread periodic, and at what period and phase?
//!
//! The default [`Analyser`] works on the bursts of one thread, in steps that each have a file:
//!
//! 1. `trains`: the trains to look at: release candidates, bursts that follow each other at once
//!    merged; those that carry the work, where a thread polls between them; those that a timer
//!    woke.
//! 2. `search`: periods that many differences between wakeups have in common, and the longest run
//!    of wakeups that such a period leads through, with beats left out.
//! 3. `fit`: the straight line through that run, release number to time: period, phase, jitter; and
//!    a better one for points that are late by anything up to a limit.
//! 4. `false_alarm`: how likely a thread without rhythm would have met as many beats as closely.
//! 5. `fold`: whether a fraction of the period fits all wakeups as well.
//! 6. `proof`: whether the period is that of a clock, or of steps or sleeps of one size. If it is
//!    neither, the thread is called not periodic.
//!
//! `search` goes through steps 2 to 4 for one train, `analyser` through the trains.
//!
//! It knows no range of periods beyond 0.5 ms to 1 s, and "not periodic" is one of its answers.
//!
//! A thread that sleeps until absolute times needs none of this: [`armed`] has its rhythm from
//! three expiries of its timer.
//!
//! After the lock, [`Tracker`] follows the rhythm burst by burst.

mod analyser;
pub mod armed;
mod compact;
mod false_alarm;
mod fit;
mod fold;
mod proof;
mod search;
pub mod track;
mod trains;

pub use analyser::{Analyser, AnalyserConfig};
pub use track::{Beat, Tracker};

/// The probability of a false alarm per analysis, and of one per job of the tracker.
pub(crate) const FALSE_ALARM_RATE: f64 = 0.01;
/// Seconds of bursts that are looked at: ten periods of the longest.
pub(crate) const WINDOW_S: u64 = 10;
/// The range of periods: 0.5 ms to 1 s, and 1% for the fit. Wider: more periods to try, and too few
/// jobs in a window.
pub(crate) const SHORTEST_NS: f64 = 0.495e6;
pub(crate) const LONGEST_NS: f64 = 1.01e9;
/// The fewest bursts that show a period: twice as many as can be off a line.
pub(crate) const FEWEST: usize = 6;
/// Periods that differ by this share are the same: the score calls such an answer right.
pub(crate) const SAME: f64 = 0.01;
/// Steps that differ by this share are alike. Raised: more sporadic threads are called periodic.
pub(crate) const ALIKE: f64 = 0.05;
/// This share is nearly all. Raised: fewer threads have a proof.
pub(crate) const NEARLY_ALL: f64 = 0.9;
/// A smaller difference is none: the clock of a recording may be this coarse.
pub(crate) const EXACT_NS: f64 = 1_000.0;
/// Points more standard deviations than this from their line are none of it: one normal point in
/// 2,000.
pub(crate) const FAR: f64 = 3.5;
/// Differences from a wakeup to this many after it are counted, because a job has up to as many;
/// and as many fractions of a period are tried. Raised: a longer search.
pub(crate) const LAGS: usize = 8;
/// The bins of the coarsest histogram of phases: wakeups spread over more than a quarter of the
/// period have no phase.
pub(crate) const COARSEST: usize = 4;

/// The logarithm of the range of periods.
fn range() -> f64 {
    (LONGEST_NS / SHORTEST_NS).ln()
}

/// The fewest points that can be off a line. As many steps are soon alike by chance.
pub(crate) fn enough_for_a_line() -> usize {
    FEWEST / 2
}

/// A period is looked for in a train as many times as long, surely more than the steps that may be
/// alike by chance.
fn turns() -> f64 {
    enough_for_a_line() as f64 + 0.5
}

/// The values of which at least one is of each kind: with fewer, `NEARLY_ALL` are of one.
fn side() -> usize {
    (1.0 / (1.0 - NEARLY_ALL)).round() as usize
}
