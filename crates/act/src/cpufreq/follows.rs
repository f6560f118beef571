//! Whether the scheduler counts a reservation's runtime in time at the highest speed, and so gives
//! more of it by itself when the CPUs run slower (frequency-invariant accounting).
//!
//! No file tells, and a kernel that can do it does so only where the processor counts its cycles.
//! So it is measured: a thread that always wants to run gets a runtime, at the lowest speed, and
//! what it has used when it is stopped was either that, or as much more as the speed is lower.

use onbeat_model::{Reservation, Span};

use crate::server::used_before_stopped;

/// By how much the two answers differ: more ticks than a thread may be stopped late.
const DIFFERENCE: Span = Span::from_ms(40);
/// Below this ratio of speeds the measurement would take too long, and the answer hardly matters.
const LEAST_RATIO: f64 = 1.1;

/// Measures, while the CPUs are `ratio` times slower than at their highest speed. None if that is
/// too little to tell, or the thread got no reservation.
pub(super) fn measure(ratio: f64) -> Option<bool> {
    let given = runtime_for(ratio)?;
    let period = given.scale(ratio * 2.0);
    let reservation = Reservation::implicit(given, period).ok()?;
    let measure = std::thread::spawn(move || used_before_stopped(reservation));
    Some(says_follows(given, measure.join().ok()??, ratio))
}

/// How much to give for the two answers to be so far apart.
fn runtime_for(ratio: f64) -> Option<Span> {
    (ratio >= LEAST_RATIO).then(|| DIFFERENCE.scale(1.0 / (ratio - 1.0)))
}

/// Whether `used` is nearer to `given` stretched by `ratio` than to `given` itself.
fn says_follows(given: Span, used: Span, ratio: f64) -> bool {
    used > given.scale((1.0 + ratio) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stopped_some_ticks_late_is_not_taken_for_one_that_was_given_more() {
        for ratio in [1.1, 1.6, 10.0 / 3.0] {
            let given = runtime_for(ratio).unwrap();
            let late = Span::from_ms(10);
            assert!(!says_follows(given, given, ratio));
            assert!(!says_follows(given, given + late, ratio));
            assert!(says_follows(given, given.scale(ratio), ratio));
            assert!(says_follows(given, given.scale(ratio) + late, ratio));
        }
        assert_eq!(runtime_for(1.05), None);
    }
}
