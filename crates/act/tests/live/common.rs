//! The helpers of the tests on the live kernel: tasks to work on, and manners.
//!
//! No test asserts when something happens: what must happen in the end is polled for, generously.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use onbeat_act::attributes::{Attributes, Fair, Policy};
use onbeat_act::restore::StateFile;
use onbeat_act::{DeadlineActuator, DeadlineOptions, may_reserve, task};
use onbeat_model::{Actuator, Refusal, Reservation, Span, TaskId};

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Ends this test program before its first test where the machine does not let it run.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = needs_root;

extern "C" fn needs_root() {
    if !may_reserve() {
        println!("test live ... skipped: it needs CAP_SYS_NICE: run as root");
        std::process::exit(i32::from(std::env::var_os("CI").is_some()));
    }
}

/// Keeps tests that need all of the machine's bandwidth apart from those that need a little, also
/// across test programs; held until dropped.
pub(crate) struct Bandwidth {
    _lock: File,
}

impl Bandwidth {
    pub(crate) fn a_little() -> Self {
        Self::lock(libc::LOCK_SH)
    }

    pub(crate) fn all() -> Self {
        Self::lock(libc::LOCK_EX)
    }

    fn lock(kind: libc::c_int) -> Self {
        let lock = File::create(std::env::temp_dir().join("onbeat-test-bandwidth.lock")).unwrap();
        // SAFETY: the descriptor is open, and flock touches no memory.
        assert_eq!(unsafe { libc::flock(lock.as_raw_fd(), kind) }, 0);
        Self { _lock: lock }
    }
}

pub(crate) fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(Path::parent).unwrap();
    let example = built.join("examples").join(name);
    assert!(
        example.exists(),
        "run 'cargo build -p onbeat-act --examples' first"
    );
    example
}

/// A process that is ended with the test, also if the test itself is killed.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn asleep() -> Self {
        let (process, _) = Self::talking(Command::new("sh").args(["-c", "echo; read _"]));
        eventually("a process that waits for input", || {
            let stat = task::stat(process.pid()).unwrap();
            (stat.state == 'S').then_some(())
        });
        process
    }

    pub(crate) fn busy() -> Self {
        Self::start(Command::new("sh").args(["-c", "while :; do :; done"]))
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        Self(
            tie_to_this_thread(command.stdout(Stdio::null()))
                .spawn()
                .unwrap(),
        )
    }

    /// One that says a line, and may wait for its input to end; and the line.
    pub(crate) fn talking(command: &mut Command) -> (Self, String) {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Self(tie_to_this_thread(command).spawn().unwrap());
        let mut line = String::new();
        let output = process.0.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        (process, line)
    }

    pub(crate) fn task(&self) -> TaskId {
        task::identify(self.0.id()).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Tells a talking process something, and gives the line that it answers.
    pub(crate) fn answer(&mut self, words: &str) -> String {
        let input = self.0.stdin.as_mut().unwrap();
        input.write_all(words.as_bytes()).unwrap();
        let mut line = String::new();
        let output = self.0.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        line
    }

    pub(crate) fn close_input(&mut self) {
        drop(self.0.stdin.take());
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The children of `command` do not outlive the calling thread: a busy loop left behind by a test
/// that was killed would disturb every measurement after it.
fn tie_to_this_thread(command: &mut Command) -> &mut Command {
    let tie = || {
        // SAFETY: prctl with PR_SET_PDEATHSIG takes a number and touches no memory.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec only prctl is called, which is a bare system call.
    unsafe { command.pre_exec(tie) }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has to run to die, and under SCHED_IDLE that may take seconds.
        let ordinary = Attributes::ordinary(0, false);
        let now = Attributes::get(self.pid());
        if now.is_ok_and(|now| matches!(now.policy, Policy::Idle(_))) {
            let _ = ordinary.set(self.pid());
        }
        let _ = self.0.kill();
        // A test that fails may leave a task that is throttled for good.
        let end = Instant::now() + PATIENCE;
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = ordinary.set(self.pid());
        let _ = self.0.wait();
    }
}

/// An actuator with a little of the machine's bandwidth, or all of it, until it is dropped.
pub(crate) struct Live {
    actuator: DeadlineActuator,
    _directory: tempfile::TempDir,
    _bandwidth: Bandwidth,
}

impl Live {
    pub(crate) fn with(bandwidth: Bandwidth) -> Self {
        let (directory, actuator) = actuator();
        Self {
            actuator,
            _directory: directory,
            _bandwidth: bandwidth,
        }
    }
}

impl Deref for Live {
    type Target = DeadlineActuator;

    fn deref(&self) -> &DeadlineActuator {
        &self.actuator
    }
}

impl DerefMut for Live {
    fn deref_mut(&mut self) -> &mut DeadlineActuator {
        &mut self.actuator
    }
}

pub(crate) fn live() -> Live {
    Live::with(Bandwidth::a_little())
}

pub(crate) fn actuator() -> (tempfile::TempDir, DeadlineActuator) {
    let directory = tempfile::tempdir().unwrap();
    let state_file = StateFile::create(directory.path()).unwrap();
    (
        directory,
        DeadlineActuator::new(state_file, DeadlineOptions::default()),
    )
}

/// A reservation of one part in a hundred, so that parallel tests find room.
pub(crate) fn small() -> Reservation {
    Reservation::implicit(Span::from_ms(1), Span::from_ms(100)).unwrap()
}

pub(crate) fn eventually<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Does what may be answered with "not before", or "no room".
pub(crate) fn patiently(what: &str, mut act: impl FnMut() -> Result<(), Refusal>) {
    eventually(what, || match act() {
        Ok(()) => Some(()),
        // Other programs may have reservations for a while.
        Err(Refusal::Settling { .. } | Refusal::NoRoom { .. }) => None,
        Err(refusal) => panic!("{what}: {refusal}"),
    });
}

pub(crate) fn reserve(actuator: &mut DeadlineActuator, task: TaskId, reservation: Reservation) {
    patiently("a reservation", || actuator.reserve(task, reservation));
}

pub(crate) fn release(actuator: &mut DeadlineActuator, task: TaskId) {
    patiently("a give-back", || actuator.release(task));
}

/// Gives back what may be much, and waits until the kernel no longer counts it.
pub(crate) fn give_up(actuator: &mut DeadlineActuator, task: TaskId) {
    release(actuator, task);
    reserve(actuator, task, small());
    release(actuator, task);
}

pub(crate) const fn attributes(policy: Policy, reset_on_fork: bool) -> Attributes {
    Attributes {
        policy,
        reset_on_fork,
    }
}

pub(crate) const fn fair(nice: i32) -> Fair {
    Fair { nice, slice_ns: 0 }
}

pub(crate) fn set_nice(task: TaskId, nice: i32) {
    // SAFETY: setpriority takes numbers and touches no memory.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, task.tid, nice) };
    assert_eq!(result, 0);
}

pub(crate) fn scheduling(task: TaskId) -> Attributes {
    Attributes::get(task.tid).unwrap()
}
