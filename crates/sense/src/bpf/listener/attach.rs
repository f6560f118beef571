//! Attaches a BPF program to an instruction of an opened file, in one process.
//!
//! By the descriptor, and by where the instruction is in the file: libbpf would open the file again by its path, which may
//! be another one by then, and parse what is mapped of it, which may be shorter by then.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys::{BPF_PERF_EVENT, bpf_link_create, bpf_link_create_opts};
use perf_event_open_sys::{bindings as kernel, ioctls, perf_event_open};

/// Attaches programs to probes.
#[derive(Debug)]
pub(super) struct Attacher {
    program: OwnedFd,
    /// The kernel's number for events of this kind.
    kind: Option<u32>,
}

impl Attacher {
    pub(super) fn new(program: OwnedFd) -> Self {
        let kind = fs::read_to_string("/sys/bus/event_source/devices/uprobe/type");
        Self {
            program,
            kind: kind.ok().and_then(|kind| kind.trim().parse().ok()),
        }
    }

    /// Attaches at `offset` in the file of the process `pid`, until what is returned is dropped. The program finds `cookie`.
    pub(super) fn attach(
        &self,
        pid: u32,
        file: BorrowedFd<'_>,
        offset: u64,
        cookie: u64,
    ) -> io::Result<OwnedFd> {
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let kind = self.kind.ok_or(io::ErrorKind::Unsupported)?;
        let mut attributes = kernel::perf_event_attr {
            type_: kind,
            size: size_of::<kernel::perf_event_attr>() as u32,
            ..Default::default()
        };
        attributes.__bindgen_anon_3.uprobe_path = path.as_ptr() as u64;
        attributes.__bindgen_anon_4.probe_offset = offset;
        // SAFETY: attributes and path live until the call returns; the descriptor that it gives is nobody else's.
        let event = unsafe {
            opened(perf_event_open(
                &raw mut attributes,
                pid.cast_signed(),
                -1,
                -1,
                u64::from(kernel::PERF_FLAG_FD_CLOEXEC),
            ))?
        };
        // Libbpf wants zeros in what other kinds of links use of the union.
        let mut options = bpf_link_create_opts {
            sz: size_of::<bpf_link_create_opts>() as _,
            ..Default::default()
        };
        options.__bindgen_anon_1.perf_event.bpf_cookie = cookie;
        let (program, target) = (self.program.as_raw_fd(), event.as_raw_fd());
        // SAFETY: both descriptors are open and the options live until the call returns; the descriptor that it gives is
        // nobody else's.
        let link = unsafe {
            opened(bpf_link_create(
                program,
                target,
                BPF_PERF_EVENT,
                &raw const options,
            ))?
        };
        // SAFETY: the descriptor is open. The link keeps the event once its descriptor is closed.
        match unsafe { ioctls::ENABLE(target, 0) } {
            0 => Ok(link),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// # Safety
/// A number that is not negative is a descriptor that nobody else has.
unsafe fn opened(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
