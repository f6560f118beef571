//! The errors of a scheduler, with their remedies.

use crate::kernel::OTHER_BUILD;
use crate::{complaints, functions, list};

/// Why a scheduler could not be started, or asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "this kernel has no sched_ext: boot one of 6.16 or newer that is built with CONFIG_SCHED_CLASS_EXT=y"
    )]
    NoSchedExt,
    /// There can be one at a time.
    #[error("the scheduler {name} is loaded already, and there can be one at a time: end it first")]
    OtherLoaded {
        /// The scheduler's name.
        name: String,
    },
    #[error(
        "may not load a scheduler: that needs root (or CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN); run it with sudo"
    )]
    NoPrivilege,
    #[error("this kernel does not take the scheduler {name}: {source} ({complaints})")]
    Refused {
        /// Which.
        name: &'static str,
        /// The kernel's error.
        source: libbpf_rs::Error,
        /// The messages before it: which function it lacks, or what its verifier found.
        complaints: String,
    },
    #[error(
        "this build of the kernel misdescribes {function}, so it refuses the scheduler {name}, which calls it: {}",
        OTHER_BUILD
    )]
    Misdescribed {
        /// Which scheduler.
        name: &'static str,
        function: String,
    },
    #[error("{scheduler} has no setting {name}; it has {known}")]
    NoSuchSetting {
        /// Whose.
        scheduler: &'static str,
        name: String,
        known: String,
    },
    /// A setting's value is too large for it.
    #[error("{value} is too large for {name}")]
    TooLarge {
        /// The setting.
        name: String,
        value: u64,
    },
    /// A setting's value makes no sense.
    #[error("{value} is too small for {name}: it is {least} at least")]
    TooSmall {
        /// The setting.
        name: String,
        value: u64,
        /// The least value allowed.
        least: i128,
    },
    /// The object is not what the loader expects: it was built from other sources.
    #[error("the object of {name} has no {what}: build onbeat anew")]
    Malformed {
        /// Which scheduler.
        name: &'static str,
        /// The missing part.
        what: &'static str,
    },
    /// A call that does not fail on a healthy kernel did.
    #[error("could not {what}: {source}")]
    Kernel {
        /// The operation that failed.
        what: &'static str,
        /// The kernel's error.
        source: libbpf_rs::Error,
    },
}

impl Error {
    /// Wraps the failure of an attempt to do `what`.
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
