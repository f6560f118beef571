//! Where tracefs is. Minimal systems and containers mount it nowhere; then onbeat mounts it for
//! itself alone, at no path: no other process sees it, and it is gone with the process. The trace
//! buffers in it are the kernel's, the same by whatever mount.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use super::TracefsError;

/// Where it is mounted, or was before it had a place of its own.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

pub(super) fn instances() -> Result<PathBuf, TracefsError> {
    for place in PLACES {
        let path = Path::new(place).join("instances");
        match fs::metadata(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(TracefsError::NoPrivilege { path: place.into() });
            }
            Err(_) => {}
        }
    }
    let mounted = mounted().map_err(|source| {
        // SAFETY: takes nothing and always succeeds.
        let is_root = unsafe { libc::geteuid() } == 0;
        match source.kind() {
            io::ErrorKind::PermissionDenied if !is_root => TracefsError::NoPrivilege {
                path: PLACES[0].into(),
            },
            _ => TracefsError::Missing { source },
        }
    })?;
    Ok(mounted.join("instances"))
}

/// A mount of our own, kept until this process ends: buffers are read and removed through it.
fn mounted() -> io::Result<PathBuf> {
    static MOUNT: OnceLock<OwnedFd> = OnceLock::new();
    let mount = match MOUNT.get() {
        Some(mount) => mount,
        None => {
            let mount = mount(c"tracefs")?;
            MOUNT.get_or_init(|| mount)
        }
    };
    Ok(format!("/proc/self/fd/{}", mount.as_raw_fd()).into())
}

/// Mounts the file system of this kind where no path leads (fsopen(2), fsmount(2); Linux 5.2).
fn mount(kind: &CStr) -> io::Result<OwnedFd> {
    let nothing = ptr::null::<libc::c_char>();
    // SAFETY: plain system calls; `kind` ends with a zero, and each descriptor is new.
    unsafe {
        let context = libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC);
        let context = owned(context)?;
        let (fd, create) = (context.as_raw_fd(), FSCONFIG_CMD_CREATE);
        if libc::syscall(libc::SYS_fsconfig, fd, create, nothing, nothing, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        owned(libc::syscall(libc::SYS_fsmount, fd, FSMOUNT_CLOEXEC, 0))
    }
}

/// # Safety
/// `answer` is that of a system call that makes a descriptor.
unsafe fn owned(answer: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(answer) {
        // SAFETY: the caller's promise.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

// linux/mount.h
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
