//! How long a thread may be silent, or busy, before its reservation is released.

use onbeat_model::Span;

use crate::tuning::lock::{LONGEST_JOB, LONGEST_JOB_AT_LEAST, SILENT_AT_LEAST, SILENT_PERIODS};

/// The longest time that a thread may compute without a pause.
pub(super) fn longest_job(period: Span) -> Span {
    (period * LONGEST_JOB).max(LONGEST_JOB_AT_LEAST)
}

/// The longest time that a thread may be off its beat, or without an event.
pub(super) fn patience(period: Span) -> Span {
    (period * SILENT_PERIODS).max(SILENT_AT_LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_may_compute_for_ten_periods_and_be_silent_for_twelve() {
        let of_ms = Span::from_ms;
        assert_eq!(longest_job(of_ms(20)), of_ms(400));
        assert_eq!(longest_job(of_ms(100)), of_ms(1000));
        assert_eq!(patience(of_ms(20)), of_ms(1500));
        assert_eq!(patience(of_ms(200)), of_ms(2400));
    }
}
