//! From bursts to beats: is this thread periodic, and at what period and phase?
//!
//! The default [`Analyser`] works on the bursts of one thread, in steps that each have a file:
//!
//! 1. `trains`: the trains to look at: release candidates, bursts that follow each other at once
//!    merged; those that carry the work, where a thread polls between them; those that a timer
//!    woke.
//! 2. `candidates`: periods that many differences between wakeups have in common.
//! 3. `chain`: the longest run of wakeups that such a period leads through, with beats left out.
//! 4. `fit`: the straight line through the chain, release number to time: period, phase, jitter;
//!    and `band`, a better one for points that are late by anything up to a limit.
//! 5. `false_alarm`: how likely a thread without rhythm would have met as many beats as closely.
//! 6. `fold`: whether a fraction of the period fits all wakeups as well.
//! 7. `proof`: whether the period is that of a clock, or of steps or sleeps of one size. If it is
//!    neither, the thread is called not periodic.
//!
//! `search` goes through steps 2 to 5 for one train, `analyser` through the trains.
//!
//! It knows no range of periods beyond 0.5 ms to 1 s, and "not periodic" is one of its answers.
//!
//! A thread that sleeps until absolute times needs none of this: [`armed`] has its rhythm from
//! three expiries of its timer.
//!
//! After the lock, [`Tracker`] follows the rhythm burst by burst. [`spectrum`] is what a user is
//! shown of the wakeups; no period is found by it.

mod analyser;
pub mod armed;
mod band;
mod candidates;
mod chain;
mod compact;
mod false_alarm;
mod fit;
mod fold;
mod proof;
mod search;
pub mod spectrum;
pub mod track;
mod trains;

pub use analyser::{Analyser, AnalyserConfig};
pub use compact::Compact;
pub use track::{Beat, Tracker};
