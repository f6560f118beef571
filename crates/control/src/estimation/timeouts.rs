//! How long a thread may be silent, or busy, before its reservation is released.

use onbeat_model::Span;

/// A thread that has not blocked for this many periods computes all the time, and one without an
/// event, or off its beat, has lost it.
const PERIODS: u64 = 10;
/// The same as a time, for short periods.
const LONGEST_JOB: Span = Span::from_ms(400);
const SILENCE: Span = Span::from_ms(1500);

/// The longest time that a thread may compute without a pause.
pub(super) fn longest_job(period: Span) -> Span {
    (period * PERIODS).max(LONGEST_JOB)
}

/// The longest time that a thread may be off its beat, or without an event.
pub(super) fn patience(period: Span) -> Span {
    (period * PERIODS).max(SILENCE)
}
