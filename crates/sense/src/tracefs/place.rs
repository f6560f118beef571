//! Where tracefs is. Minimal systems and containers mount it nowhere; then onbeat mounts it for
//! itself alone, at no path: no other process sees it, and it is gone with the process. The trace
//! buffers in it are the kernel's, the same by whatever mount.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::process::geteuid;

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
    let mounted = mounted().map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied if !geteuid().is_root() => TracefsError::NoPrivilege {
            path: PLACES[0].into(),
        },
        _ => TracefsError::Missing { source },
    })?;
    Ok(mounted.join("instances"))
}

/// A mount of our own, kept until this process ends: buffers are read and removed through it.
fn mounted() -> io::Result<PathBuf> {
    static MOUNT: OnceLock<OwnedFd> = OnceLock::new();
    let mount = match MOUNT.get() {
        Some(mount) => mount,
        None => {
            // Where no path leads.
            let tracefs = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_create(&tracefs)?;
            let (flags, attributes) = (FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty());
            let mount = fsmount(&tracefs, flags, attributes)?;
            MOUNT.get_or_init(|| mount)
        }
    };
    Ok(format!("/proc/self/fd/{}", mount.as_raw_fd()).into())
}
