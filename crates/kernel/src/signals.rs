//! Signals that wait to be read.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// From now on `signals` wait to be read from the descriptor (`signalfd_siginfo`), which does not
/// block. To be called before any thread is started, because threads inherit what is blocked.
pub fn block(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: the set lives on this stack and is initialised by sigemptyset before it is read; the
    // descriptor that signalfd returns is new.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        for &signal in signals {
            libc::sigaddset(&raw mut set, signal);
        }
        let error = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}
