//! The errors of tracing, each with advice.

#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    #[error(
        "may not load BPF programs: tracing needs root, or CAP_BPF and CAP_PERFMON; run it with sudo"
    )]
    NoPrivilege,
    #[error(
        "this container has process numbers of its own, and the tracer the machine's: start it with \
         those of the host (--pid=host; hostPID: true)"
    )]
    OtherNumbers,
    #[error("this kernel does not take the tracer ({source}); `onbeat doctor` says what it lacks")]
    Unsupported { source: libbpf_rs::Error },
    #[error("there is no thread {tid}: it has exited, or never was; see `ps -eL`")]
    NoSuchTask { tid: u32 },
    #[error(
        "no room to track thread {tid} and its siblings: {most} tasks are tracked already; \
         track fewer, or allow more"
    )]
    Full { tid: u32, most: u32 },
    /// A call that does not fail on a healthy kernel did.
    #[error("could not {what}: {source}")]
    Kernel {
        what: &'static str,
        source: libbpf_rs::Error,
    },
}

impl BpfError {
    pub(super) fn kernel(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Self {
        move |source| Self::Kernel { what, source }
    }

    /// Tells a missing privilege from a missing feature. Others' capabilities the kernel judges.
    pub(super) fn loading(source: libbpf_rs::Error) -> Self {
        if source.kind() == libbpf_rs::ErrorKind::PermissionDenied
            && !rustix::process::geteuid().is_root()
        {
            Self::NoPrivilege
        } else {
            Self::Unsupported { source }
        }
    }
}
