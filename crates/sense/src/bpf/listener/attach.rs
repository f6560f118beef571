//! Attaches a BPF program to an instruction of an opened file, in one process.
//!
//! The file is named by its descriptor, and the instruction by its offset. libbpf would open the
//! file again by its path, which may lead to another file by then, and parse a mapping of it, which
//! may be shorter by then.
//!
//! perf's uprobes need CAP_SYS_ADMIN, which the service does not have. Linux 6.6 added links for
//! uprobes (BPF_TRACE_UPROBE_MULTI), which need no more than the loading of their program. The
//! first kernels with them heard only one thread of a process, and count as kernels without.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys::{
    BPF_ALU64, BPF_EXIT, BPF_JMP, BPF_K, BPF_MOV, BPF_PERF_EVENT, BPF_PROG_TYPE_KPROBE,
    BPF_TRACE_UPROBE_MULTI, bpf_insn, bpf_link_create, bpf_link_create_opts,
    bpf_link_create_opts__bindgen_ty_1__bindgen_ty_3, bpf_prog_load, bpf_prog_load_opts,
};
use perf_event_open_sys::{bindings as kernel, ioctls, perf_event_open};

/// Attaches programs to probes.
#[derive(Debug)]
pub(super) struct Attacher {
    program: OwnedFd,
    /// The kernel's number for perf's uprobes.
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

    /// Attaches at `offset` in the file of the process `pid`, until what is returned is dropped.
    /// The program finds `cookie`.
    pub(super) fn attach(
        &self,
        pid: u32,
        file: BorrowedFd<'_>,
        offset: u64,
        cookie: u64,
    ) -> io::Result<OwnedFd> {
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        match link(
            self.program.as_fd(),
            pid.cast_signed(),
            &path,
            offset,
            cookie,
        ) {
            // The program was not loaded for links.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                self.attach_by_perf(pid, &path, offset, cookie)
            }
            linked => linked,
        }
    }

    fn attach_by_perf(
        &self,
        pid: u32,
        path: &CStr,
        offset: u64,
        cookie: u64,
    ) -> io::Result<OwnedFd> {
        let kind = self.kind.ok_or(io::ErrorKind::Unsupported)?;
        let mut attributes = kernel::perf_event_attr {
            type_: kind,
            size: size_of::<kernel::perf_event_attr>() as u32,
            ..Default::default()
        };
        attributes.__bindgen_anon_3.uprobe_path = path.as_ptr() as u64;
        attributes.__bindgen_anon_4.probe_offset = offset;
        // SAFETY: attributes and path live until the call returns; the descriptor that it gives is
        // new.
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
        // SAFETY: both descriptors are open and the options live until the call returns; the
        // descriptor that it gives is new.
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

/// True if the kernel has links for uprobes that hear all threads of a process.
pub(in crate::bpf) fn has_links() -> bool {
    let nothing = |code: u32| bpf_insn {
        code: code as u8,
        ..Default::default()
    };
    // A program that returns 0.
    let program = [
        nothing(BPF_ALU64 | BPF_MOV | BPF_K),
        nothing(BPF_JMP | BPF_EXIT),
    ];
    let mut options = bpf_prog_load_opts {
        sz: size_of::<bpf_prog_load_opts>() as _,
        expected_attach_type: BPF_TRACE_UPROBE_MULTI,
        ..Default::default()
    };
    // SAFETY: all that is pointed to lives until the call returns; the descriptor that it gives is
    // new.
    let loaded = unsafe {
        let (name, licence) = (c"probe".as_ptr(), c"GPL".as_ptr());
        let (begin, count) = (program.as_ptr(), program.len() as _);
        let kind = BPF_PROG_TYPE_KPROBE;
        opened(bpf_prog_load(
            kind,
            name,
            licence,
            begin,
            count,
            &raw mut options,
        ))
    };
    let refused = |pid| {
        let program = loaded.as_ref().ok()?;
        let error = link(program.as_fd(), pid, c"/", 0, 0).err()?;
        error.raw_os_error()
    };
    // A folder cannot have probes: EBADF. A kernel with the right filter refuses the process -1
    // before that: EINVAL. libbpf probes in the same way.
    refused(0) == Some(libc::EBADF) && refused(-1) == Some(libc::EINVAL)
}

/// Attaches a program that was loaded for links.
fn link(
    program: BorrowedFd<'_>,
    pid: i32,
    path: &CStr,
    offset: u64,
    cookie: u64,
) -> io::Result<OwnedFd> {
    let mut options = bpf_link_create_opts {
        sz: size_of::<bpf_link_create_opts>() as _,
        ..Default::default()
    };
    options.__bindgen_anon_1.uprobe_multi = bpf_link_create_opts__bindgen_ty_1__bindgen_ty_3 {
        path: path.as_ptr(),
        offsets: &raw const offset,
        cookies: &raw const cookie,
        cnt: 1,
        pid: pid.cast_unsigned(),
        ..Default::default()
    };
    // SAFETY: the program is open, and all that is pointed to lives until the call returns; the
    // descriptor that it gives is new.
    unsafe {
        let options = &raw const options;
        opened(bpf_link_create(
            program.as_raw_fd(),
            -1,
            BPF_TRACE_UPROBE_MULTI,
            options,
        ))
    }
}

/// # Safety
/// A number that is not negative is a new descriptor.
unsafe fn opened(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
