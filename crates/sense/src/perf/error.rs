//! The errors of perf events, each with advice.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    #[error(
        "perf events are not for ordinary users here (kernel.perf_event_paranoid is {level}): \
         'sudo sysctl kernel.perf_event_paranoid=2' allows them for one's own programs, or run it with sudo"
    )]
    Paranoid { level: String },
    #[error("this kernel has no perf events ({source}): boot one with CONFIG_PERF_EVENTS=y")]
    Missing { source: io::Error },
    #[error(
        "no room for perf's buffers: other programs of yours have what kernel.perf_event_mlock_kb allows; \
         end those, or raise it"
    )]
    NoRoom,
    #[error("there is no thread {tid}: it has exited, or never was; see `ps -eL`")]
    NoSuchTask { tid: u32 },
    #[error(
        "may not hear thread {tid}: it is another user's, or runs a program with rights of its own; run it with sudo"
    )]
    NotYours { tid: u32 },
    #[error(
        "no room to track thread {tid}: it takes a file descriptor for each CPU, and no more are allowed; \
         see `ulimit -n`"
    )]
    Full { tid: u32 },
    /// A call that does not fail on a healthy kernel did.
    #[error("could not {what}: {source}")]
    Kernel {
        what: &'static str,
        source: io::Error,
    },
}

impl PerfError {
    pub(super) fn kernel(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Kernel { what, source }
    }

    pub(super) fn opening(source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => {
                let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
                Self::Paranoid {
                    level: level.map_or("unknown".to_owned(), |text| text.trim().to_owned()),
                }
            }
            Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP) => Self::Missing { source },
            _ => Self::kernel("open a perf event")(source),
        }
    }

    pub(super) fn tracking(tid: u32, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::ESRCH) => Self::NoSuchTask { tid },
            Some(libc::EACCES | libc::EPERM) => Self::NotYours { tid },
            Some(libc::EMFILE | libc::ENFILE) => Self::Full { tid },
            _ => Self::kernel("open a perf event of a thread")(source),
        }
    }
}
