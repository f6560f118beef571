//! The clock of every sensor's events, and those of CPU time.

use onbeat_model::{Instant, Span};
use rustix::time::{ClockId, clock_gettime};

/// The length of the ticks in which `/proc` tells times (USER_HZ, 100 on every machine).
pub const TICK: Span = Span::from_ms(10);

pub fn now() -> Instant {
    Instant::from_ns(read_ns(ClockId::Monotonic))
}

pub fn thread_cpu_time() -> Span {
    Span::from_ns(read_ns(ClockId::ThreadCPUTime))
}

pub fn process_cpu_time() -> Span {
    Span::from_ns(read_ns(ClockId::ProcessCPUTime))
}

/// The start that `/proc` tells of a thread that was started at `at`, or a tick more.
pub fn ticks_at(at: Instant) -> u64 {
    // The clock since boot goes on while the machine sleeps.
    let asleep_ns = read_ns(ClockId::Boottime).saturating_sub(read_ns(ClockId::Monotonic));
    at.as_ns().saturating_add(asleep_ns) / TICK.as_ns()
}

fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
