//! Opens events that count nothing, and tell of the context switches of a thread and of what it
//! starts.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys::{bindings as kernel, ioctls, perf_event_open};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tells {
    /// Nothing: it is there for its ring.
    Nothing,
    /// It tells switches, starts, names and ends, also those of its children.
    Switches,
}

/// Opens an event of the thread `tid` (0: this one) on `cpu`. Wakes the reader once
/// `watermark_bytes` are written.
pub(super) fn open(tid: u32, cpu: u32, tells: Tells, watermark_bytes: u32) -> io::Result<OwnedFd> {
    let mut attributes = kernel::perf_event_attr {
        type_: kernel::PERF_TYPE_SOFTWARE,
        size: size_of::<kernel::perf_event_attr>() as u32,
        config: u64::from(kernel::PERF_COUNT_SW_DUMMY),
        sample_type: u64::from(
            kernel::PERF_SAMPLE_TID
                | kernel::PERF_SAMPLE_TIME
                | kernel::PERF_SAMPLE_ID
                | kernel::PERF_SAMPLE_CPU,
        ),
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attributes.set_use_clockid(1);
    attributes.set_sample_id_all(1);
    // An ordinary user may not ask what the kernel does; that it switches is not meant by it.
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    attributes.set_watermark(1);
    attributes.__bindgen_anon_2.wakeup_watermark = watermark_bytes;
    if tells == Tells::Switches {
        attributes.set_inherit(1);
        attributes.set_context_switch(1);
        attributes.set_task(1);
        attributes.set_comm(1);
        attributes.set_comm_exec(1);
    }
    // SAFETY: the attributes live until the call returns; the descriptor that it gives is new.
    unsafe {
        let fd = perf_event_open(
            &raw mut attributes,
            tid.cast_signed(),
            cpu.cast_signed(),
            -1,
            u64::from(kernel::PERF_FLAG_FD_CLOEXEC),
        );
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Has `event` write to the ring of `ring`, which is of the same CPU.
pub(super) fn write_to(event: &OwnedFd, ring: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both descriptors are open.
    match unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), ring.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The number that stands in the records of `event`, and of those that are inherited from it.
pub(super) fn number(event: &OwnedFd) -> io::Result<u64> {
    let mut number = 0;
    // SAFETY: the descriptor is open, and the kernel writes one number to where a live one is.
    match unsafe { ioctls::ID(event.as_raw_fd(), &raw mut number) } {
        0 => Ok(number),
        _ => Err(io::Error::last_os_error()),
    }
}
