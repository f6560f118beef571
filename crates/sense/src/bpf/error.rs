//! The errors of tracing, each with advice.

/// Why the kernel could not be heard.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// BPF is for the privileged.
    #[error(
        "may not load BPF programs: tracing needs root, or CAP_BPF and CAP_PERFMON; run it with sudo"
    )]
    NoPrivilege,
    /// The programs do not load here.
    #[error("this kernel does not take the tracer ({source}); `onbeat doctor` says what it lacks")]
    Unsupported {
        /// The kernel's error.
        source: libbpf_rs::Error,
    },
    /// There is no task to track.
    #[error("there is no thread {tid}: it has exited, or never was; see `ps -eL`")]
    NoSuchTask {
        /// The task that was asked for.
        tid: u32,
    },
    /// No more room.
    #[error(
        "no room to track thread {tid} and its siblings: {most} tasks are tracked already; \
         track fewer, or allow more"
    )]
    Full {
        /// The task that was asked for.
        tid: u32,
        /// How many there is room for.
        most: u32,
    },
    /// A call that does not fail on a healthy kernel did.
    #[error("could not {what}: {source}")]
    Kernel {
        /// The attempt.
        what: &'static str,
        /// The kernel's error.
        source: libbpf_rs::Error,
    },
}

impl BpfError {
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
