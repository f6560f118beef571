//! Waits for several descriptors, to the nanosecond.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use onbeat_model::Span;

/// Sleeps until one of `sources` has something to say or `longest` is over; false if a signal came.
pub(crate) fn readable(sources: &[BorrowedFd<'_>], longest: Span) -> io::Result<bool> {
    let mut polls: Vec<libc::pollfd> = (sources.iter())
        .map(|source| libc::pollfd {
            fd: source.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let timeout = libc::timespec {
        tv_sec: (longest.as_ns() / 1_000_000_000) as _,
        tv_nsec: (longest.as_ns() % 1_000_000_000) as libc::c_long,
    };
    let count = polls.len() as libc::nfds_t;
    // SAFETY: as many pollfds as are counted, and one timespec, outlive the call; there is no
    // signal mask.
    if unsafe {
        libc::ppoll(
            polls.as_mut_ptr(),
            count,
            &raw const timeout,
            std::ptr::null(),
        )
    } >= 0
    {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        error => Err(error),
    }
}
