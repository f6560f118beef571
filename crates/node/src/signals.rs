//! The signals that end the plugin, as something to wait for beside the socket.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// SIGTERM, SIGINT, SIGQUIT and SIGHUP, blocked.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// From now on these signals wait to be seen. To be called before any thread is started,
    /// because threads inherit what is blocked.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn block() -> io::Result<Self> {
        // SAFETY: the set lives on this stack and is initialised by sigemptyset before it is read;
        // the descriptor that signalfd returns is nobody else's.
        unsafe {
            let mut set = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
                libc::sigaddset(&raw mut set, signal);
            }
            let error =
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            if error != 0 {
                return Err(io::Error::from_raw_os_error(error));
            }
            let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Waits for a signal, for something to read at `other`, or for so long.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn wait(&self, other: Option<RawFd>, at_most: Option<Duration>) -> io::Result<Woken> {
        let descriptors = [self.0.as_raw_fd(), other.unwrap_or(-1)];
        // poll skips negative descriptors.
        let mut ready = descriptors.map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        let timeout = at_most.map_or(-1, |time| {
            i32::try_from(time.as_millis()).unwrap_or(i32::MAX)
        });
        // SAFETY: the array has two entries and lives until the call returns.
        let count = unsafe { libc::poll(ready.as_mut_ptr(), 2, timeout) };
        if count < 0 {
            let error = io::Error::last_os_error();
            // A process that was stopped goes on here.
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok(Woken::ByTime),
                _ => Err(error),
            };
        }
        let [signal, other] = ready.map(|one| one.revents != 0);
        Ok(match (signal, other) {
            (true, _) => Woken::ToEnd,
            (false, true) => Woken::ToRead,
            (false, false) => Woken::ByTime,
        })
    }
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// A signal.
    ToEnd,
    /// Something to read, or the other side has closed.
    ToRead,
    /// The time is over.
    ByTime,
}
