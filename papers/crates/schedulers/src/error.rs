//! The errors of a scheduler, with their remedies.

use crate::kernel::OTHER_BUILD;
use crate::{complaints, functions, list};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "this kernel has no sched_ext: boot one of 6.16 or newer that is built with CONFIG_SCHED_CLASS_EXT=y"
    )]
    NoSchedExt,
    #[error("the scheduler {name} is loaded already, and there can be one at a time: end it first")]
    OtherLoaded { name: String },
    #[error(
        "may not load a scheduler: that needs root (or CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN); run it with sudo"
    )]
    NoPrivilege,
    #[error("this kernel does not take the scheduler {name}: {source} ({complaints})")]
    Refused {
        name: &'static str,
        source: libbpf_rs::Error,
        /// The messages before it: which function it lacks, or what its verifier found.
        complaints: String,
    },
    #[error(
        "this build of the kernel misdescribes {function}, so it refuses the scheduler {name}, which calls it: {}",
        OTHER_BUILD
    )]
    Misdescribed {
        name: &'static str,
        function: String,
    },
    #[error("{scheduler} has no setting {name}; it has {known}")]
    NoSuchSetting {
        scheduler: &'static str,
        name: String,
        known: String,
    },
    #[error("{value} is too large for {name}")]
    TooLarge { name: String, value: u64 },
    #[error("{value} is too small for {name}: it is {least} at least")]
    TooSmall {
        name: String,
        value: u64,
        least: i128,
    },
    /// The object is not what the loader expects: it was built from other sources.
    #[error("the object of {name} has no {what}: build onbeat anew")]
    Malformed {
        name: &'static str,
        what: &'static str,
    },
    #[error("could not {what}: {source}")]
    Kernel {
        what: &'static str,
        source: libbpf_rs::Error,
    },
}

impl Error {
    pub(crate) fn kernel(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Self {
        move |source| Self::Kernel { what, source }
    }

    /// Tells a missing privilege, and a kernel whose build went wrong, from a scheduler that the
    /// kernel does not take.
    pub(crate) fn loading(name: &'static str, source: libbpf_rs::Error) -> Self {
        // SAFETY: no arguments, cannot fail.
        let is_root = unsafe { libc::geteuid() == 0 };
        if source.kind() == libbpf_rs::ErrorKind::PermissionDenied && !is_root {
            return Self::NoPrivilege;
        }
        let object = list::find(name).map(|scheduler| scheduler.object);
        match functions::misdescribed(object) {
            Some(function) => Self::Misdescribed { name, function },
            None => Self::Refused {
                name,
                source,
                complaints: complaints::last(),
            },
        }
    }
}
