//! What can go wrong with tracefs, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why threads could not be heard through tracefs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is for root.
    #[error("may not use {}: tracefs is for root; run it with sudo", path.display())]
    NoPrivilege {
        /// Where it is.
        path: PathBuf,
    },
    /// It is not there.
    #[error(
        "no tracefs here, and onbeat could not mount it ({source}): 'mount -t tracefs nodev /sys/kernel/tracing', or boot a \
         kernel with CONFIG_FTRACE=y"
    )]
    Missing {
        /// What the kernel said.
        source: io::Error,
    },
    /// A file of it does not take what is written, or give what is asked.
    #[error("could not {what} ({}: {source})", path.display())]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// By which file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Nobody to track.
    #[error("there is no thread {tid}: it has exited, or never was; see `ps -eL`")]
    NoSuchTask {
        /// Who was asked for.
        tid: u32,
    },
}
