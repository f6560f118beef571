//! How long a thread may be silent, or busy, before its reservation is released.

use onbeat_model::Span;

/// A thread that has not blocked for this many periods computes all the time.
const LONGEST_JOB: u64 = 10;
/// The same as a time, for short periods.
const LONGEST_JOB_AT_LEAST: Span = Span::from_ms(400);
/// The periods that a thread may be off its beat, or without an event.
const SILENT_PERIODS: u64 = 12;
/// The same as a time, for short periods.
const SILENT_AT_LEAST: Span = Span::from_ms(1500);

/// The longest time that a thread may compute without a pause.
pub(super) fn longest_job(period: Span) -> Span {
    (period * LONGEST_JOB).max(LONGEST_JOB_AT_LEAST)
}

/// The longest time that a thread may be off its beat, or without an event.
pub(super) fn patience(period: Span) -> Span {
    (period * SILENT_PERIODS).max(SILENT_AT_LEAST)
}
