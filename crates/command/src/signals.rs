//! Signals as something to read between two turns of the loop, so that every way out leads through
//! the same clean-up.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use onbeat_kernel::{signals, wait};
use onbeat_model::Span;

/// The signals that end onbeat or concern its child.
const HEARD: [i32; 8] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGCHLD,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSignal {
    pub number: i32,
    /// The terminal sent it: to the whole foreground process group, so our child has it, too.
    pub from_terminal: bool,
}

pub struct Signals(OwnedFd);

impl Signals {
    /// From now on signals wait to be read. To be called before any thread is started, for threads
    /// inherit what is blocked.
    pub fn block() -> io::Result<Self> {
        signals::block(&HEARD).map(Self)
    }

    /// The next one that is to end onbeat, of those that came; the others are let go.
    pub fn next_that_ends(&self) -> Option<i32> {
        let came = std::iter::from_fn(|| self.next());
        came.map(|signal| signal.number).find(|number| {
            matches!(
                *number,
                libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT
            )
        })
    }

    pub fn wait(&self) {
        let _ = wait::readable(&[self.0.as_fd()], None);
    }

    pub fn wait_at_most(&self, time: Duration) {
        let time = Span::from_us(time.as_micros().try_into().unwrap_or(u64::MAX));
        let _ = wait::readable(&[self.0.as_fd()], Some(time));
    }

    pub fn next(&self) -> Option<ReceivedSignal> {
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the structure is plain data for which zeros are valid, lives on this stack, and
        // the kernel writes at most its size.
        let (read, info) = unsafe {
            let mut info = std::mem::zeroed::<libc::signalfd_siginfo>();
            let read = libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), size);
            (read, info)
        };
        (read == size as isize).then(|| ReceivedSignal {
            number: info.ssi_signo.cast_signed(),
            from_terminal: info.ssi_code == libc::SI_KERNEL,
        })
    }
}

/// To be waited for: one that a thread sent to itself alone is not seen.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
