//! Ends a poll of the tracer from another thread: a service has to answer between two events, too.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Wakes the thread that polls the sensor that it is from. Waking twice before it is noticed is
/// waking once.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// A waker that was not used yet. Fails if the process has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(Arc::new(eventfd(0, flags)?)))
    }

    /// Ends the poll under way, or the next one at once.
    pub fn wake(&self) {
        // It can only fail if the counter is full, which wakes as well.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(super) fn was_woken(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]) == Ok(8)
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
