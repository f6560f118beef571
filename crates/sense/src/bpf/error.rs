//! What can go wrong with tracing, and what to do about it.

/// Why the kernel could not be heard.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// BPF is for the privileged.
    #[error(
        "may not load BPF programs: tracing needs root, or CAP_BPF and CAP_PERFMON; run it with sudo"
    )]
    NoPrivilege,
    /// The programs do not load here.
    #[error("this kernel does not take the tracer ({source}); `onbeat doctor` says what it lacks")]
    Unsupported {
        /// What the kernel said.
        source: libbpf_rs::Error,
    },
    /// Nobody to track.
    #[error("there is no thread {tid}: it has exited, or never was; see `ps -eL`")]
    NoSuchTask {
        /// Who was asked for.
        tid: u32,
    },
    /// No more room.
    #[error(
        "no room to track thread {tid} and its siblings: {most} tasks are tracked already; \
         track fewer, or allow more"
    )]
    Full {
        /// Who was asked for.
        tid: u32,
        /// How many there is room for.
        most: u32,
    },
    /// A call that does not fail on a healthy kernel did.
    #[error("could not {what}: {source}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: libbpf_rs::Error,
    },
}

impl Error {
    /// Wraps the failure of an attempt to do `what`.
    pub(super) fn kernel(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Self {
        move |source| Self::Kernel { what, source }
    }

    /// Tells a missing privilege from a missing feature.
    pub(super) fn loading(source: libbpf_rs::Error) -> Self {
        if source.kind() == libbpf_rs::ErrorKind::PermissionDenied && !is_privileged() {
            Self::NoPrivilege
        } else {
            Self::Unsupported { source }
        }
    }
}

/// True for root; the capabilities of others are for the kernel to judge.
fn is_privileged() -> bool {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() == 0 }
}
