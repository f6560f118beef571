//! The errors of tracefs, each with advice.

use std::io;
use std::path::PathBuf;

use crate::bpf::BpfError;

/// Why threads could not be heard through tracefs.
#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    /// It is for root.
    #[error("may not use {}: tracefs is for root; run it with sudo", path.display())]
    NoPrivilege { path: PathBuf },
    /// As for BPF.
    #[error(transparent)]
    OtherNumbers(#[from] BpfError),
    /// It is not there.
    #[error(
        "no tracefs here, and onbeat could not mount it ({source}): 'mount -t tracefs nodev /sys/kernel/tracing', or boot a \
         kernel with CONFIG_FTRACE=y"
    )]
    Missing { source: io::Error },
    /// A file of it does not take what is written, or give what is asked.
    #[error("could not {what} ({}: {source})", path.display())]
    Kernel {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// There is no task to track.
    #[error("there is no thread {tid}: it has exited, or never was; see `ps -eL`")]
    NoSuchTask { tid: u32 },
}
