//! The process without rights that parses files for the service and for commands of root.
//!
//! Two processes: a worker parses, and the one above it starts another worker when this one has
//! ended. Both gave up every capability. The worker may make only the system calls that reading an
//! open file and answering take, so it can open nothing, start nothing and signal no process. Its
//! address space, its CPU time and the time of each request have limits. It is replaced after 100
//! requests, so that what one file did to it does not stay.
//!
//! Both end with the process that started them: the socket of requests is closed then.

use std::fs::File;
use std::io::{self, Write};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::parser::{FileKind, answer};
use crate::ptrace::filter::{ARCHITECTURE, ARCHITECTURE_AT, NUMBER_AT, instruction};

/// A request that takes longer, in seconds, ends its worker: the file may be one of a file system
/// in user space. A request takes some milliseconds.
const LONGEST_REQUEST_S: i64 = 2;
/// The CPU time of a worker, in seconds. 100 requests of some milliseconds take less than one.
const MOST_CPU_S: u64 = 5;
/// The requests of a worker. A player has a hundred libraries: one worker parses those of a
/// program.
const MOST_REQUESTS: usize = 100;
/// The memory of a worker beyond what it has at first, in bytes. Parsing takes less than 10 MiB.
const MOST_MEMORY: u64 = 64 << 20;
/// The pause until another worker is started, after one that was ended by the kernel; each further
/// one is twice as long. A request that met the end of a worker is asked again at the next look
/// (`FIRST_PAUSE`).
const FIRST_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);
/// And the longest. `LONGEST_REQUEST_S`, the longest that a request waits in any case.
const LONGEST_PAUSE: std::time::Duration = std::time::Duration::from_secs(2);

/// The number of the user without rights. Where a process may not become it, as in the service's
/// unit, it stays root without a capability.
const NOBODY: u32 = 65534;

/// How a worker ends by itself: to be replaced, or for good.
const REPLACED: i32 = 0;
const OVER: i32 = 1;
/// A parser panicked.
const FAILED: i32 = 2;

/// The file and the socket of a request.
const FILES: usize = 2;
const FILES_BYTES: usize = FILES * size_of::<RawFd>();

/// The bytes of a control message with these descriptors, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Starts both processes, with nice -20 if they are to go ahead. The caller has one thread. Returns
/// where requests go.
pub(super) fn start(ahead: bool) -> io::Result<OwnedFd> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the kernel writes two numbers.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
    // SAFETY: the call gave both descriptors, which are new.
    let [ours, theirs] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    let own = std::process::id().cast_signed();
    // SAFETY: the child is a copy of a process with one thread, and never returns from here.
    match check(unsafe { libc::fork() })? {
        0 => {
            drop(ours);
            if ahead {
                // SAFETY: a plain system call about this process. Where it is refused, answers
                // come later beside hogs.
                unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
            }
            supervise(&theirs, own)
        }
        _ => Ok(ours),
    }
}

/// Sends a request, without waiting for room.
pub(super) fn send(
    requests: BorrowedFd<'_>,
    kind: FileKind,
    files: [RawFd; FILES],
) -> io::Result<()> {
    let mut byte = [u8::from(kind == FileKind::Elf)];
    let mut control = Control([0; 64]);
    with_message(&mut byte, &mut control, |message| {
        // SAFETY: the buffer of the message has room for one header and two descriptors, which
        // `with_message` has asserted.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(FILES_BYTES as u32) as _;
            let data = libc::CMSG_DATA(header).cast::<[RawFd; FILES]>();
            data.write_unaligned(files);
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::sendmsg(requests.as_raw_fd(), message, flags)
        }
    })
    .map(drop)
}

/// The next request. None once no other can come.
fn receive(requests: &OwnedFd) -> Option<(FileKind, File, UnixStream)> {
    let mut byte = [0];
    let mut control = Control([0; 64]);
    let mut files = None;
    let received = with_message(&mut byte, &mut control, |message| {
        // SAFETY: the message and its buffers live until the call returns; the kernel writes a
        // header before descriptors, and tells their length.
        unsafe {
            let received = libc::recvmsg(requests.as_raw_fd(), message, libc::MSG_CMSG_CLOEXEC);
            let header = libc::CMSG_FIRSTHDR(message);
            let length = libc::CMSG_LEN(FILES_BYTES as u32) as usize;
            if received > 0
                && !header.is_null()
                && (*header).cmsg_type == libc::SCM_RIGHTS
                && (*header).cmsg_len as usize == length
            {
                let data = libc::CMSG_DATA(header).cast::<[RawFd; FILES]>();
                files = Some(data.read_unaligned());
            }
            received
        }
    });
    received.ok().filter(|length| *length > 0)?;
    // SAFETY: the kernel gave these descriptors just now.
    let [file, answers] = files?.map(|file| unsafe { OwnedFd::from_raw_fd(file) });
    let kind = if byte == [0] {
        FileKind::Maps
    } else {
        FileKind::Elf
    };
    Some((kind, file.into(), answers.into()))
}

/// A message of one byte and two descriptors, in these buffers.
fn with_message(
    byte: &mut [u8; 1],
    control: &mut Control,
    call: impl FnOnce(&mut libc::msghdr) -> isize,
) -> io::Result<usize> {
    // SAFETY: a sum of numbers.
    let space = unsafe { libc::CMSG_SPACE(FILES_BYTES as u32) } as usize;
    assert!(space <= size_of::<Control>(), "room for two descriptors");
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: byte.len(),
    };
    // SAFETY: numbers and pointers, of which zeros are values.
    let mut message = unsafe { zeroed::<libc::msghdr>() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = space as _;
    usize::try_from(call(&mut message)).map_err(|_| io::Error::last_os_error())
}

/// Starts one worker after the other, until the process that asks has gone.
fn supervise(requests: &OwnedFd, asking: i32) -> ! {
    // Without rights, it might not get through to /proc. A worker begins as large as this process.
    let began = memory().and_then(|memory| {
        give_up_rights()?;
        end_with_parent(asking)?;
        Ok(memory)
    });
    let Ok(memory) = began else { end(OVER) };
    let own = std::process::id().cast_signed();
    let mut pause = FIRST_PAUSE;
    loop {
        // SAFETY: the child is a copy of a process with one thread, and never returns from here.
        let worker = unsafe { libc::fork() };
        if worker == 0 {
            let worked = catch_unwind(AssertUnwindSafe(|| work(requests, own, memory)));
            end(worked.unwrap_or(FAILED));
        }
        let mut status = 0;
        // SAFETY: the kernel writes one number.
        let ended = unsafe { libc::waitpid(worker, &raw mut status, 0) };
        let by_itself = ended == worker && ended > 0 && libc::WIFEXITED(status);
        match libc::WEXITSTATUS(status) {
            OVER if by_itself => end(OVER),
            REPLACED if by_itself => pause = FIRST_PAUSE,
            _ => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Answers requests, with as many bytes of memory at first. Returns how it ends.
fn work(requests: &OwnedFd, supervisor: i32, memory: u64) -> i32 {
    let confined = end_with_parent(supervisor)
        .and_then(|()| limit(memory))
        .and_then(|()| confine());
    if confined.is_err() {
        return OVER;
    }
    for _ in 0..MOST_REQUESTS {
        let Some((kind, file, mut answers)) = receive(requests) else {
            return OVER;
        };
        alarm(LONGEST_REQUEST_S);
        // The asking process may have given up.
        let _ = answers.write_all(&answer(kind, file));
        alarm(0);
    }
    REPLACED
}

/// Ends this process after `seconds` seconds; never, if 0.
fn alarm(seconds: i64) {
    // SAFETY: numbers, of which zeros are values; the kernel reads the structure.
    unsafe {
        let mut timer = zeroed::<libc::itimerval>();
        timer.it_value.tv_sec = seconds;
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
}

fn end(status: i32) -> ! {
    // SAFETY: ends this process, without what its parent has registered for its own end.
    unsafe { libc::_exit(status) }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Ends this process when its parent ends, of which this is the number.
fn end_with_parent(parent: i32) -> io::Result<()> {
    // SAFETY: numbers only.
    unsafe {
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
        // It may have ended before.
        check(if libc::getppid() == parent { 0 } else { -1 })?;
    }
    Ok(())
}

/// Becomes the user without rights, and gives up every capability for good.
fn give_up_rights() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    /// Of `linux/capability.h`: two words of each set.
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let none = [[0_u32; 3]; 2];
    // SAFETY: numbers, and structures that the kernel reads, which live until the calls return.
    unsafe {
        // Signals that its parent has blocked end this process.
        let mut nothing = zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut nothing);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const nothing, std::ptr::null_mut());
        libc::setgroups(0, std::ptr::null());
        libc::setresgid(NOBODY, NOBODY, NOBODY);
        libc::setresuid(NOBODY, NOBODY, NOBODY);
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        check(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0))?;
        let given_up = libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr());
        check(given_up as i32)?;
    }
    Ok(())
}

/// The bytes of this process's address space.
fn memory() -> io::Result<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages = pages.split(' ').next().and_then(|pages| pages.parse().ok());
    let pages: u64 = pages.ok_or(io::ErrorKind::InvalidData)?;
    // SAFETY: sysconf has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.cast_unsigned();
    Ok(pages * page)
}

/// Sets the limits of a worker that has as many bytes of memory, and of its CPU time.
fn limit(memory: u64) -> io::Result<()> {
    let limits = [
        (libc::RLIMIT_AS, memory + MOST_MEMORY),
        (libc::RLIMIT_CPU, MOST_CPU_S),
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_FSIZE, 0),
    ];
    for (resource, most) in limits {
        let limit = libc::rlimit {
            rlim_cur: most,
            rlim_max: most,
        };
        // SAFETY: the kernel reads the structure.
        check(unsafe { libc::setrlimit(resource, &raw const limit) })?;
    }
    Ok(())
}

/// The system calls of a worker: reading an open file, answering, memory, and its end.
const CALLS: [libc::c_long; 24] = [
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_lseek,
    libc::SYS_recvmsg,
    libc::SYS_write,
    libc::SYS_sendto,
    libc::SYS_close,
    libc::SYS_setitimer,
    libc::SYS_mmap,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mprotect,
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_fcntl,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_clock_gettime,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Any other system call ends this process from now on.
fn confine() -> io::Result<()> {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let is = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let end = libc::BPF_RET | libc::BPF_K;
    let mut program = vec![
        instruction(load, ARCHITECTURE_AT, 0, 0),
        instruction(is, ARCHITECTURE, 1, 0),
        instruction(end, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
        instruction(load, NUMBER_AT, 0, 0),
    ];
    for call in CALLS {
        program.push(instruction(is, call as u32, 0, 1));
        program.push(instruction(end, libc::SECCOMP_RET_ALLOW, 0, 0));
    }
    program.push(instruction(end, libc::SECCOMP_RET_KILL_PROCESS, 0, 0));
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap_or(u16::MAX),
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the kernel reads the program, which lives until the call returns.
    let confined = unsafe {
        let mode = libc::SECCOMP_MODE_FILTER;
        libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program)
    };
    check(confined).map(drop)
}
