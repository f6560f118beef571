//! For how long a thread may be silent, or busy, before what it has is given back.

use onbeat_model::Span;

/// After so many periods without blocking, and so long, a thread computes all the time: less would be too little for one that
/// catches up, more is what a liar keeps (`onbeat-sim`, liars_before_the_loop).
const LONGEST_JOB: u64 = 10;
const SHORTEST_PATIENCE: Span = Span::from_ms(400);

/// For how long a thread may compute without a pause.
pub(crate) fn longest_job(period: Span) -> Span {
    (period * LONGEST_JOB).max(SHORTEST_PATIENCE)
}

/// For how long a thread may be out of its rhythm, or not heard of, before it is given back.
pub(crate) fn patience(period: Span) -> Span {
    (period * 12).max(Span::from_ms(1500))
}
