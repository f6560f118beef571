//! The errors of tracefs, each with advice.

use std::io;
use std::path::PathBuf;

use crate::bpf::BpfError;

#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    #[error("may not use {}: tracefs is for root; run it with sudo", path.display())]
    NoPrivilege { path: PathBuf },
    #[error(transparent)]
    OtherNumbers(#[from] BpfError),
    #[error(
        "no tracefs here, and onbeat could not mount it ({source}): 'mount -t tracefs nodev /sys/kernel/tracing', or boot a \
         kernel with CONFIG_FTRACE=y"
    )]
    Missing { source: io::Error },
    #[error("could not {what} ({}: {source})", path.display())]
    Kernel {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("there is no thread {tid}: it has exited, or never was; see `ps -eL`")]
    NoSuchTask { tid: u32 },
}
