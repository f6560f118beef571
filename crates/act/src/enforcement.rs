//! How exactly this kernel ends a reserved task's turn when its runtime is used up: by a timer of
//! its own, or at the next tick. Measured, because the switch (the scheduler feature HRTICK_DL)
//! cannot be read on a locked-down kernel.

use onbeat_model::{Instant, Reservation, Span};

use crate::attributes::Attributes;
use onbeat_kernel::clock;

/// The runtime given. A kernel with HRTICK_DL stops within some 10 us of it, one without at the
/// next tick, 1 to 10 ms later.
const RUNTIME: Span = Span::from_us(200);
/// And in this time. A pause of `PERIOD` - `RUNTIME` is far longer than `GAP`.
const PERIOD: Span = Span::from_ms(50);
/// A thread that does not run for this long was throttled. Above the 10 ms for which an interrupt
/// or another thread stops it, and below `PERIOD`.
const GAP: Span = Span::from_ms(20);

/// What a short-lived thread that always wants to run got of a runtime before it was stopped, and
/// that runtime; none if it gets no reservation, or is never stopped.
pub(crate) fn measure() -> Option<(Span, Span)> {
    let reservation = Reservation::implicit(RUNTIME, PERIOD).ok()?;
    let measure = std::thread::spawn(move || used_before_stopped(reservation));
    Some((measure.join().ok()??, RUNTIME))
}

/// The CPU time that the calling thread, which always wants to run, gets of a `reservation` before
/// it is stopped for the first time; none if it gets none, or is not stopped. The thread keeps the
/// reservation until it ends.
pub(crate) fn used_before_stopped(reservation: Reservation) -> Option<Span> {
    Attributes::reserved(reservation, false).set(0).ok()?;
    let begun = clock::thread_cpu_time();
    let end = clock::now() + reservation.period() * 10;
    let mut last: (Instant, Span) = (clock::now(), begun);
    while last.0 < end {
        let now = (clock::now(), clock::thread_cpu_time());
        if now.0.since(last.0) > GAP {
            return Some(last.1 - begun);
        }
        last = now;
    }
    None
}
