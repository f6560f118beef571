//! The clock of every tracer's events, and the one that tells when threads started.

use onbeat_model::Instant;

/// Of the ticks in which `/proc` tells when threads started (USER_HZ).
const NS_PER_TICK: u64 = 10_000_000;

/// The present time of CLOCK_MONOTONIC, which all tracers' events carry.
pub(crate) fn now() -> Instant {
    Instant::from_ns(read_ns(libc::CLOCK_MONOTONIC))
}

/// The start that `/proc` tells of a thread that was started at `at`, or a tick more.
pub(crate) fn ticks_at(at: Instant) -> u64 {
    // The clock since boot goes on while the machine sleeps.
    let asleep_ns = read_ns(libc::CLOCK_BOOTTIME).saturating_sub(read_ns(libc::CLOCK_MONOTONIC));
    at.as_ns().saturating_add(asleep_ns) / NS_PER_TICK
}

fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec to where a live one is.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
