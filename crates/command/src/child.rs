//! Starts the program that onbeat runs, held back at a gate until it is protected or tracked.
//!
//! The standard library's `Command` returns only after the program was executed, when its first
//! bursts are over and it may have started threads. Here the new process waits before its `exec`
//! until [`Gated::open`] is called, so that it is protected, or tracked, from its first instruction
//! on.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use onbeat_act::own;
use onbeat_sense::preparation::ExitStatuses;
use onbeat_sense::preparation::Preparation;
use onbeat_sense::ptrace::Filter;

use crate::signals::Signals;

/// As the shell, `env` and `nice` have it.
const CANNOT_EXECUTE: u8 = 126;
const NOT_FOUND: u8 = 127;

pub struct Gated {
    child: Child,
    gate: io::PipeWriter,
    failure: io::PipeReader,
    program: OsString,
}

#[derive(Debug)]
pub struct Child {
    pid: libc::pid_t,
    status: Option<ProgramEnd>,
    /// The tracer that is told in our place how it ended.
    ends: Option<ExitStatuses>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    Exited(u8),
    Killed(u8),
}

impl ProgramEnd {
    fn of(status: i32) -> Self {
        if libc::WIFEXITED(status) {
            Self::Exited(libc::WEXITSTATUS(status) as u8)
        } else {
            Self::Killed(libc::WTERMSIG(status) as u8)
        }
    }

    /// The exit code of onbeat in turn: the program's status, or as the shell has it 128 and the
    /// signal's number.
    pub fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Exited(status) => status,
            Self::Killed(signal) => signal.saturating_add(128),
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot execute {program}: {error}")]
pub struct CannotExecute {
    program: String,
    error: io::Error,
}

impl CannotExecute {
    pub fn code(&self) -> u8 {
        match self.error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            _ => CANNOT_EXECUTE,
        }
    }
}

impl Gated {
    /// Forks a process that will become `command`. Signals that the caller has blocked are open in
    /// it.
    pub fn fork(command: &[OsString]) -> io::Result<Self> {
        Self::prepared(command, Preparation::default())
    }

    pub fn prepared(command: &[OsString], preparation: Preparation) -> io::Result<Self> {
        Self::fork_with(command, preparation, None)
    }

    /// The same, with nothing to read, and its output going nowhere.
    pub fn fork_in_silence(command: &[OsString], preparation: Preparation) -> io::Result<Self> {
        let nowhere = File::options().read(true).write(true).open("/dev/null")?;
        Self::fork_with(command, preparation, Some(nowhere.as_raw_fd()))
    }

    fn fork_with(
        command: &[OsString],
        preparation: Preparation,
        streams: Option<RawFd>,
    ) -> io::Result<Self> {
        let arguments: Vec<CString> = command
            .iter()
            .map(|argument| CString::new(argument.as_bytes()))
            .collect::<Result<_, _>>()?;
        let argv = null_terminated(&arguments);
        let environment = environment(preparation.environment)?;
        let envp = null_terminated(&environment);
        let (gate_reader, gate) = io::pipe()?;
        let (failure, failure_writer) = io::pipe()?;
        // SAFETY: between fork and exec the child calls async-signal-safe functions only, on memory
        // that was prepared before.
        let pid = unsafe { libc::fork() };
        match pid {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                let closed = [gate.as_raw_fd(), failure.as_raw_fd()];
                become_program(
                    (&argv, &envp),
                    preparation.filter.as_ref(),
                    gate_reader.as_raw_fd(),
                    failure_writer.as_raw_fd(),
                    closed,
                    streams,
                )
            }
            _ => own::pass_nice_on(pid.unsigned_abs()),
        }
        Ok(Self {
            child: Child {
                pid,
                status: None,
                ends: preparation.ends,
            },
            gate,
            failure,
            program: command.first().cloned().unwrap_or_default(),
        })
    }

    /// Its number, the same after the gate was opened.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub fn executable(&self) -> Option<PathBuf> {
        executable(&self.program)
    }

    /// Lets it go on, and waits for its end; signals to onbeat go on to it.
    pub fn run_to_end(self, signals: &Signals) -> Result<ExitCode, CannotExecute> {
        let mut child = self.open()?;
        loop {
            if let Some(end) = child.ended() {
                return Ok(end.code());
            }
            signals.wait();
            while let Some(signal) = signals.next() {
                if signal.number != libc::SIGCHLD && !signal.from_terminal {
                    child.signal(signal.number);
                }
            }
        }
    }

    pub fn abandon(mut self) {
        drop(self.gate);
        self.child.wait();
    }

    /// Lets it go on to its `exec`, and waits until that succeeded or failed.
    pub fn open(mut self) -> Result<Child, CannotExecute> {
        let mut errno = [0; 4];
        let told = self
            .gate
            .write_all(&[1])
            .and_then(|()| self.failure.read(&mut errno));
        let error = match told {
            Ok(0) => return Ok(self.child),
            Ok(_) => io::Error::from_raw_os_error(i32::from_ne_bytes(errno)),
            Err(error) => error,
        };
        let _ = self.child.wait();
        Err(CannotExecute {
            program: self.program.to_string_lossy().into_owned(),
            error,
        })
    }
}

/// The file that is executed as `program`, found as `execvp` finds it.
fn executable(program: &OsStr) -> Option<PathBuf> {
    let program = Path::new(program);
    if program.as_os_str().as_bytes().contains(&b'/') {
        return program.canonicalize().ok();
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))?
        .canonicalize()
        .ok()
}

/// Another of onbeat's programs: beside this one, or where the shell looks.
pub fn sibling(name: &str) -> PathBuf {
    let beside = std::env::current_exe().map(|program| program.with_file_name(name));
    let beside = beside.ok().filter(|program| program.exists());
    beside.unwrap_or_else(|| name.into())
}

/// Whether a child of ours has ended; how, is of no interest.
pub fn has_ended(pid: u32) -> bool {
    // SAFETY: no status is asked for.
    unsafe { libc::waitpid(pid.cast_signed(), std::ptr::null_mut(), libc::WNOHANG) != 0 }
}

fn is_executable(file: &Path) -> bool {
    let Ok(path) = CString::new(file.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: a plain system call on a string that outlives it.
    file.is_file() && unsafe { libc::access(path.as_ptr(), libc::X_OK) } == 0
}

/// As `execve` takes them; good while `strings` lives.
fn null_terminated(strings: &[CString]) -> Vec<*const libc::c_char> {
    let pointers = strings.iter().map(|string| string.as_ptr());
    pointers.chain([std::ptr::null()]).collect()
}

fn environment(added: Vec<(OsString, OsString)>) -> io::Result<Vec<CString>> {
    let is_added = |name: &OsString| added.iter().any(|(other, _)| other == name);
    let own = std::env::vars_os().filter(|(name, _)| !is_added(name));
    own.chain(added.iter().cloned())
        .map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            Ok(CString::new(name.as_bytes())?)
        })
        .collect()
}

/// Waits at the gate, then executes. Async-signal-safe but for `execvpe`, which signal-safety(7)
/// does not list: the C library looks the program up on this stack, without a lock or `malloc`.
fn become_program(
    (argv, envp): (&[*const libc::c_char], &[*const libc::c_char]),
    filter: Option<&Filter>,
    gate: RawFd,
    failure: RawFd,
    closed: [RawFd; 2],
    streams: Option<RawFd>,
) -> ! {
    let mut go = 0_u8;
    // SAFETY: all calls can be made after a fork; the descriptors are open and ours; `go`, the
    // signal set and errno's bytes live on this stack; argv and envp are null-terminated, and their
    // strings are the parent's, of which this process has a copy.
    unsafe {
        for fd in closed {
            libc::close(fd);
        }
        if libc::read(gate, (&raw mut go).cast(), 1) == 1 {
            if let Some(streams) = streams {
                for standard in 0..=2 {
                    libc::dup2(streams, standard);
                }
            }
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            let mut none = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            if filter.is_none_or(|filter| filter.install().is_ok()) {
                libc::execvpe(argv[0], argv.as_ptr(), envp.as_ptr());
            }
            let errno = (*libc::__errno_location()).to_ne_bytes();
            libc::write(failure, errno.as_ptr().cast(), errno.len());
        }
        libc::_exit(i32::from(NOT_FOUND))
    }
}

impl Child {
    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Whether it can go on without us: the kernel ends what ptrace holds, with its tracer.
    pub const fn outlives_us(&self) -> bool {
        self.ends.is_none()
    }

    pub fn signal(&mut self, signal: i32) {
        // A tracer may have reaped it since it was last asked for, and its number be another's.
        if self.ended().is_none() {
            // SAFETY: numbers only.
            unsafe { libc::kill(self.pid, signal) };
        }
    }

    pub fn ended(&mut self) -> Option<ProgramEnd> {
        self.reap(libc::WNOHANG)
    }

    pub fn wait(&mut self) -> Option<ProgramEnd> {
        self.reap(0)
    }

    fn reap(&mut self, flags: i32) -> Option<ProgramEnd> {
        if let (None, Some(ends)) = (self.status, &self.ends) {
            let told = match flags {
                0 => ends.wait_for(self.pid()),
                _ => ends.status_of(self.pid()),
            };
            self.status = told.map(ProgramEnd::of);
            return self.status;
        }
        while self.status.is_none() {
            let mut status = 0;
            // SAFETY: `status` lives until the call returns.
            let pid = unsafe { libc::waitpid(self.pid, &raw mut status, flags) };
            if pid == self.pid {
                self.status = Some(ProgramEnd::of(status));
            } else if pid == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break;
            }
        }
        self.status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silenced_program_s_streams_lead_nowhere() {
        let command = [
            "sh",
            "-c",
            "for n in 0 1 2; do test /proc/self/fd/$n -ef /dev/null || exit 1; done",
        ];
        let gated =
            Gated::fork_in_silence(&command.map(OsString::from), Preparation::default()).unwrap();
        assert_eq!(gated.open().unwrap().wait(), Some(ProgramEnd::Exited(0)));
    }

    #[test]
    fn nothing_of_the_program_runs_before_the_gate_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let command = [OsString::from("touch"), mark.clone().into_os_string()];
        let gated = Gated::fork(&command).unwrap();
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", gated.pid())).unwrap();
        assert_ne!(comm.trim(), "touch");
        assert!(!mark.exists());
        assert_eq!(gated.open().unwrap().wait(), Some(ProgramEnd::Exited(0)));
        assert!(mark.exists());
    }

    #[test]
    fn a_gate_that_is_dropped_ends_the_process() {
        let gated = Gated::fork(&[OsString::from("true")]).unwrap();
        let Gated {
            mut child, gate, ..
        } = gated;
        drop(gate);
        assert_eq!(child.wait(), Some(ProgramEnd::Exited(NOT_FOUND)));
    }

    #[test]
    fn an_abandoned_process_has_ended_without_having_executed_anything() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let command = [OsString::from("touch"), mark.clone().into_os_string()];
        let gated = Gated::fork(&command).unwrap();
        let pid = gated.pid();
        gated.abandon();
        assert!(!mark.exists());
        assert!(has_ended(pid), "there is no such child any more");
    }
}
