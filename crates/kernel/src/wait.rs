//! Waits for descriptors, to the nanosecond.

use std::io;
use std::os::fd::BorrowedFd;

use onbeat_model::Span;
pub use rustix::event::{PollFd, PollFlags};
use rustix::event::{Timespec, poll as poll_files};

/// Waits until one of `files` is ready or `longest` is over; false if a signal came before.
pub fn poll(files: &mut [PollFd<'_>], longest: Option<Span>) -> io::Result<bool> {
    let timeout = longest.map(|longest| Timespec {
        tv_sec: (longest.as_ns() / 1_000_000_000).cast_signed(),
        tv_nsec: (longest.as_ns() % 1_000_000_000).cast_signed(),
    });
    match poll_files(files, timeout.as_ref()) {
        Ok(_) => Ok(true),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub fn sleep(span: Span) {
    std::thread::sleep(std::time::Duration::from_nanos(span.as_ns()));
}

/// The same as [`poll`], until one of `sources` can be read.
pub fn readable(sources: &[BorrowedFd<'_>], longest: Option<Span>) -> io::Result<bool> {
    let mut files: Vec<PollFd<'_>> = (sources.iter())
        .map(|source| PollFd::new(source, PollFlags::IN))
        .collect();
    poll(&mut files, longest)
}
