//! The steps of a periodic thread: it sleeps until a time, and takes CPU time.

use std::io;

use onbeat_model::Span;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

pub(crate) fn execute(time: Span) {
    let end = clock(ClockId::ThreadCPUTime) + time;
    while clock(ClockId::ThreadCPUTime) < end {
        std::hint::spin_loop();
    }
}

pub(crate) fn now() -> Span {
    clock(ClockId::Monotonic)
}

fn clock(which: ClockId) -> Span {
    let time = clock_gettime(which);
    let [seconds, ns] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    Span::from_secs(seconds) + Span::from_ns(ns)
}

pub(crate) fn sleep_until(at: Span) {
    let ns = at.as_ns();
    let at = Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (ns % 1_000_000_000) as _,
    };
    while clock_nanosleep_absolute(ClockId::Monotonic, &at)
        .is_err_and(|error| io::Error::from(error).kind() == io::ErrorKind::Interrupted)
    {}
}
