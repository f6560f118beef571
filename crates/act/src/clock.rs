//! The present time, on the clock of the sensors' events: CLOCK_MONOTONIC.

use onbeat_model::{Instant, Span};

/// Reads CLOCK_MONOTONIC.
#[must_use]
pub fn now() -> Instant {
    read(libc::CLOCK_MONOTONIC)
}

/// The CPU time that the calling thread has used.
pub(crate) fn executed() -> Instant {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> Instant {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid buffer, and both clocks always exist.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Instant::from_ns(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Sleeps at least this long.
pub(crate) fn sleep(span: Span) {
    std::thread::sleep(std::time::Duration::from_nanos(span.as_ns()));
}
