//! Ends a poll of the tracer from another thread: a service has to answer between two events, too.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// Wakes the thread that polls the sensor that it is from. Waking twice before it is noticed is
/// waking once.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// A waker that was not used yet.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes two numbers; the descriptor that it returns is new.
        let fd = unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self(Arc::new(fd)))
    }

    /// Ends the poll under way, or the next one at once.
    pub fn wake(&self) {
        let one: u64 = 1;
        // It can only fail if the counter is full, which wakes as well.
        // SAFETY: the kernel reads the eight bytes of a live number.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Whether it was woken since this was last asked.
    pub(super) fn was_woken(&self) -> bool {
        let mut count: u64 = 0;
        // SAFETY: the kernel writes the eight bytes of a live number.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) == 8 }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
