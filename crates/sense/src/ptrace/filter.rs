//! The seccomp filter by which a program stops at chosen system calls only; all others run at full
//! speed.

use std::io;

use crate::calls::Call;

/// A filter that a process installs for itself and everything it will start.
///
/// Under it a chosen call fails with ENOSYS where no tracer is attached, so it goes with
/// [`PtraceSensor`](super::PtraceSensor), which tracks the process before it installs the filter.
#[derive(Clone, Debug)]
pub struct Filter(Vec<libc::sock_filter>);

/// Where `struct seccomp_data` has the call's number, and the architecture that it is a number of.
pub(crate) const NUMBER_AT: u32 = std::mem::offset_of!(libc::seccomp_data, nr) as u32;
pub(crate) const ARCHITECTURE_AT: u32 = std::mem::offset_of!(libc::seccomp_data, arch) as u32;

/// Of `linux/audit.h`: the ELF machine, 64 bit, little endian.
#[cfg(target_arch = "x86_64")]
pub(crate) const ARCHITECTURE: u32 = libc::EM_X86_64 as u32 | 0xc000_0000;
#[cfg(target_arch = "aarch64")]
pub(crate) const ARCHITECTURE: u32 = libc::EM_AARCH64 as u32 | 0xc000_0000;

impl Filter {
    pub fn new(calls: &[Call]) -> Self {
        let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
        let is = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        let answer = |what| instruction(libc::BPF_RET | libc::BPF_K, what, 0, 0);
        let mut program = vec![
            instruction(load, ARCHITECTURE_AT, 0, 0),
            instruction(is, ARCHITECTURE, 1, 0),
            // Calls of another architecture have other numbers.
            answer(libc::SECCOMP_RET_ALLOW),
            instruction(load, NUMBER_AT, 0, 0),
        ];
        for call in calls {
            program.push(instruction(is, call.number(), 0, 1));
            program.push(answer(libc::SECCOMP_RET_TRACE));
        }
        program.push(answer(libc::SECCOMP_RET_ALLOW));
        Self(program)
    }

    /// Installs it for the calling thread. Async-signal-safe: for a process between `fork` and
    /// `exec`.
    ///
    /// Without CAP_SYS_ADMIN the thread gives up for good that an `exec` may raise its privileges,
    /// as the kernel demands.
    pub fn install(&self) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: u16::try_from(self.0.len()).unwrap_or(u16::MAX),
            filter: self.0.as_ptr().cast_mut(),
        };
        // SAFETY: the kernel reads the program, which lives until the call returns, and writes
        // nothing.
        let set = || unsafe {
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            )
        };
        if set() == 0 {
            return Ok(());
        }
        // SAFETY: numbers only.
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        if set() == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

pub(crate) fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}
