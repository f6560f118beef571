//! How long a thread may be silent, or busy, before its reservation is released.

use onbeat_model::Span;

/// A thread that has not blocked for this many periods, and this long, computes all the time. Less
/// is too little for a thread that catches up. A liar keeps its reservation for this long
/// (`onbeat-sim`, liars_before_the_loop).
const LONGEST_JOB: u64 = 10;
const SHORTEST_PATIENCE: Span = Span::from_ms(400);

/// The longest time that a thread may compute without a pause.
pub(super) fn longest_job(period: Span) -> Span {
    (period * LONGEST_JOB).max(SHORTEST_PATIENCE)
}

/// The longest time that a thread may be off its beat, or without an event.
pub(super) fn patience(period: Span) -> Span {
    (period * 12).max(Span::from_ms(1500))
}
