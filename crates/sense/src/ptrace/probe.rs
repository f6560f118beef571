//! Whether ptrace and seccomp filters work here: tried, as sandboxes, containers, Yama and the
//! kernel's own build each forbid them in their own way, and none tells beforehand.

use std::fs;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;

use super::tracer::OPTIONS;
use super::{Filter, PtraceError};
use crate::calls::Call;

/// Starts a process, traces it, and has it stop at a call by a filter of its own.
pub(super) fn run() -> Result<(), PtraceError> {
    let filter = Filter::new(Call::all());
    let no_process = |source| PtraceError::NoProcess { source };
    let (reader, writer) = io::pipe().map_err(no_process)?;
    // SAFETY: the child calls async-signal-safe functions only, on memory that was prepared before.
    match unsafe { libc::fork() } {
        -1 => Err(no_process(io::Error::last_os_error())),
        0 => subject(&filter, &reader, &writer),
        pid => observe(pid, reader, writer),
    }
}

/// The process that is tried with: waits to be traced, and ends with what hindered it.
/// Async-signal-safe throughout.
fn subject(filter: &Filter, gate: &PipeReader, others_end: &PipeWriter) -> ! {
    let mut go = 0_u8;
    // SAFETY: the descriptors are open and this process's own; `go` lives on this stack.
    unsafe {
        libc::close(others_end.as_raw_fd());
        let mut status = 0;
        if libc::read(gate.as_raw_fd(), (&raw mut go).cast(), 1) == 1 {
            if let Err(error) = filter.install() {
                status = error.raw_os_error().unwrap_or(libc::EINVAL);
            }
            // Here it is to stop.
            libc::read(gate.as_raw_fd(), (&raw mut go).cast(), 0);
        }
        libc::_exit(status)
    }
}

fn observe(pid: libc::pid_t, gate: PipeReader, mut go: PipeWriter) -> Result<(), PtraceError> {
    drop(gate);
    // SAFETY: numbers only, about a child that is not waited for yet.
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0_usize, OPTIONS as usize) };
    let refused = (seized != 0).then(io::Error::last_os_error);
    if refused.is_none() {
        // A child that is gone cannot be told, which its end then tells.
        let _ = go.write_all(&[1]);
    }
    drop(go);
    let (stopped, status) = follow(pid).map_err(|source| PtraceError::NoProcess { source })?;
    match (refused, status) {
        (Some(source), _) => Err(PtraceError::Forbidden {
            source,
            remedy: remedy(),
        }),
        (None, 0) if stopped => Ok(()),
        (None, 0) => Err(PtraceError::NeverStops),
        (None, errno) => Err(PtraceError::NoFilter {
            source: io::Error::from_raw_os_error(errno),
        }),
    }
}

/// Lets it go on to its end; gives whether it stopped by its filter, and its status.
fn follow(pid: libc::pid_t) -> io::Result<(bool, i32)> {
    let mut stopped = false;
    loop {
        let mut status = 0;
        // SAFETY: `status` lives until the call returns.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        if !libc::WIFSTOPPED(status) {
            let killed = !libc::WIFEXITED(status);
            return Ok((
                stopped,
                if killed {
                    libc::EPERM
                } else {
                    libc::WEXITSTATUS(status)
                },
            ));
        }
        stopped |= status >> 16 == libc::PTRACE_EVENT_SECCOMP;
        // SAFETY: numbers only, about a process that stands still.
        unsafe { libc::ptrace(libc::PTRACE_CONT, pid, 0_usize, 0_usize) };
    }
}

fn remedy() -> &'static str {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    match scope.as_deref().map(str::trim) {
        Ok("3") => {
            "kernel.yama.ptrace_scope is 3 until the next boot, and nobody may trace; boot with another, or take \
             another tracer"
        }
        Ok("2") => {
            "kernel.yama.ptrace_scope is 2, and only root may trace; 'sudo sysctl kernel.yama.ptrace_scope=1' lets \
             everybody trace what he starts"
        }
        _ => {
            "a sandbox or container forbids it, or a debugger holds onbeat; run it outside, let the container have it \
             (--cap-add=SYS_PTRACE), or take another tracer"
        }
    }
}
