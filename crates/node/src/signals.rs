//! The signals that end the plugin, as something to wait for beside the socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use onbeat_kernel::signals;
use onbeat_kernel::wait::{self, PollFd, PollFlags};
use onbeat_model::Span;

/// SIGTERM, SIGINT, SIGQUIT and SIGHUP, blocked.
#[derive(Debug)]
pub struct EndingSignals(OwnedFd);

impl EndingSignals {
    /// From now on these signals wait to be seen. To be called before any thread is started,
    /// because threads inherit what is blocked.
    pub fn block() -> io::Result<Self> {
        let ending = [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT, libc::SIGHUP];
        signals::block(&ending).map(Self)
    }

    pub fn wait(
        &self,
        other: Option<BorrowedFd<'_>>,
        at_most: Option<Duration>,
    ) -> io::Result<WaitEnd> {
        let sources = [Some(self.0.as_fd()), other].into_iter().flatten();
        let mut files: Vec<PollFd<'_>> = sources
            .map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN))
            .collect();
        let time = |time: Duration| Span::from_us(time.as_micros().try_into().unwrap_or(u64::MAX));
        // A process that was stopped goes on where a signal came before.
        if !wait::poll(&mut files, at_most.map(time))? {
            return Ok(WaitEnd::ByTime);
        }
        let mut ready = files.iter().map(|file| !file.revents().is_empty());
        Ok(match (ready.next(), ready.next()) {
            (Some(true), _) => WaitEnd::ToEnd,
            (_, Some(true)) => WaitEnd::ToRead,
            _ => WaitEnd::ByTime,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    ToEnd,
    /// Something to read, or the other side has closed.
    ToRead,
    ByTime,
}
