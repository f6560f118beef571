//! The thread that traces: what is stopped waits for it, so it does nothing else.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::{Arc, mpsc};
use std::thread;

use onbeat_model::{Event, Follow, Instant, Span, Task, TaskId};

use super::burst_builder::{Course, SchedStat};
use crate::identity;
use crate::inbox::Inbox;
use onbeat_kernel::clock::now;

/// Between two looks at a thread's name. Programs name threads at their start, and each look reads
/// a file while the thread is stopped.
const NAMES_EVERY: Span = Span::from_secs(1);
/// The files kept open. Half of the 1,024 that a process may have by default.
const MOST_OPEN: usize = 512;

/// Everything that the program starts inherits its filter, and cannot make a chosen call without a
/// tracer: so all is traced, whomever events are wanted of, and nothing lives on without us.
pub(super) const OPTIONS: i32 = libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;

/// The type of ptrace(2)'s requests differs between C libraries.
#[cfg(target_env = "musl")]
type PtraceRequest = libc::c_int;
#[cfg(not(target_env = "musl"))]
type PtraceRequest = libc::c_uint;

/// Starts the thread that traces the process `pid`, which has one thread still, and all that it
/// starts.
pub(super) fn start(pid: u32, follow: Follow, inbox: &Arc<Inbox>) -> io::Result<()> {
    let (tell, told) = mpsc::sync_channel(1);
    let inbox = Arc::clone(inbox);
    // Only the thread that seized a process can trace it.
    let begin = move || {
        // SAFETY: numbers only; the process is stopped by nothing yet and no memory of ours is
        // concerned.
        let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0_usize, OPTIONS as usize) };
        if seized != 0 {
            let _ = tell.send(Err(io::Error::last_os_error()));
            return;
        }
        inbox.begin();
        let _ = tell.send(Ok(()));
        PtraceTracer::new(pid, follow, &inbox).run();
        inbox.end();
    };
    thread::Builder::new()
        .name("onbeat-ptrace".to_owned())
        .spawn(begin)?;
    told.recv()
        .unwrap_or_else(|_| Err(io::Error::other("the tracing thread is gone")))
}

struct PtraceTracer<'a> {
    root: u32,
    follow: Follow,
    inbox: &'a Inbox,
    threads: HashMap<u32, TracedThread>,
    own: Option<File>,
}

struct TracedThread {
    task: Task,
    followed: bool,
    course: Course,
    account: Option<File>,
    named: Instant,
}

enum WaitResult {
    Stopped { tid: u32, signal: i32, event: i32 },
    Ended { tid: u32, status: i32 },
}

impl<'a> PtraceTracer<'a> {
    fn new(root: u32, follow: Follow, inbox: &'a Inbox) -> Self {
        let mut tracer = Self {
            root,
            follow,
            inbox,
            threads: HashMap::new(),
            own: File::open("/proc/thread-self/schedstat").ok(),
        };
        tracer.meet(root, now());
        tracer
    }

    fn run(mut self) {
        loop {
            let before = self.own_wait();
            let Some(told) = wait() else {
                return;
            };
            // A stop that is told late, because we had to wait for a CPU, happened before that
            // wait.
            let at = now() - (self.own_wait() - before);
            match told {
                WaitResult::Stopped { tid, signal, event } => self.stopped(tid, signal, event, at),
                WaitResult::Ended { tid, status } => {
                    self.gone(tid, at);
                    if tid == self.root {
                        self.inbox.ended(tid, status);
                    }
                }
            }
        }
    }

    fn own_wait(&self) -> Span {
        let own = self.own.as_ref().and_then(read);
        own.map_or(Span::ZERO, |own| own.waited)
    }

    fn stopped(&mut self, tid: u32, signal: i32, event: i32, at: Instant) {
        self.meet(tid, at);
        match event {
            libc::PTRACE_EVENT_SECCOMP => {
                self.called(tid, at);
                resume(libc::PTRACE_CONT, tid, 0);
            }
            libc::PTRACE_EVENT_STOP if is_stopping(signal) => resume(libc::PTRACE_LISTEN, tid, 0),
            libc::PTRACE_EVENT_EXEC => {
                self.executes(tid, at);
                resume(libc::PTRACE_CONT, tid, 0);
            }
            // Its own signal, to be delivered.
            0 => resume(libc::PTRACE_CONT, tid, signal),
            _ => resume(libc::PTRACE_CONT, tid, 0),
        }
    }

    /// Takes in the thread `tid`, if it is new.
    fn meet(&mut self, tid: u32, at: Instant) {
        if self.threads.contains_key(&tid) {
            return;
        }
        let known = identity::task(tid);
        let task = known.unwrap_or(Task {
            id: TaskId::recorded(tid),
            pid: tid,
            comm: identity::name(tid).unwrap_or_default(),
        });
        let followed =
            known.is_some() && (self.follow == Follow::Children || task.pid == self.root);
        let account = (self.threads.len() < MOST_OPEN)
            .then(|| open(tid))
            .flatten();
        let first = account.as_ref().and_then(read).unwrap_or_default();
        let thread = TracedThread {
            task,
            followed,
            course: Course::new(task.id, at, first),
            account,
            // A new thread is named by its first call.
            named: Instant::ZERO,
        };
        if followed {
            self.inbox.push(Event::Tracked { at, task });
        }
        self.threads.insert(tid, thread);
    }

    fn called(&mut self, tid: u32, at: Instant) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        if !thread.followed {
            return;
        }
        let account = match &thread.account {
            Some(account) => read(account),
            None => open(tid).as_ref().and_then(read),
        };
        if let Some(account) = account {
            let burst = thread.course.stopped(at, account);
            burst
                .into_iter()
                .for_each(|burst| self.inbox.push(Event::Burst(burst)));
        }
        if at.since(thread.named) >= NAMES_EVERY {
            thread.look_at_name(at, self.inbox);
        }
        thread.course.resumed(now());
    }

    /// A process executes another program: of its threads, one is left, under the number of the
    /// first.
    fn executes(&mut self, pid: u32, at: Instant) {
        let others: Vec<u32> = (self.threads.iter())
            .filter(|&(&tid, thread)| thread.task.pid == pid && tid != pid)
            .map(|(&tid, _)| tid)
            .collect();
        others.into_iter().for_each(|tid| self.gone(tid, at));
        let Some(thread) = self.threads.get_mut(&pid) else {
            return;
        };
        // Another thread may have taken the first one's number.
        thread.account = open(pid);
        let account = thread.account.as_ref().and_then(read).unwrap_or_default();
        let course =
            std::mem::replace(&mut thread.course, Course::new(thread.task.id, at, account));
        if thread.followed {
            self.inbox.push(Event::Burst(course.finish()));
            thread.look_at_name(at, self.inbox);
        }
    }

    fn gone(&mut self, tid: u32, at: Instant) {
        let Some(thread) = self.threads.remove(&tid) else {
            return;
        };
        if thread.followed {
            let task = thread.task.id;
            self.inbox.push(Event::Burst(thread.course.finish()));
            self.inbox.push(Event::Exited { at, task });
        }
    }
}

impl TracedThread {
    fn look_at_name(&mut self, at: Instant, inbox: &Inbox) {
        self.named = at;
        let name = identity::name(self.task.id.tid);
        if let Some(comm) = name.filter(|&name| name != self.task.comm) {
            self.task.comm = comm;
            let task = self.task;
            inbox.push(Event::Renamed { at, task });
        }
    }
}

fn open(tid: u32) -> Option<File> {
    File::open(format!("/proc/{tid}/schedstat")).ok()
}

fn read(account: &File) -> Option<SchedStat> {
    let mut text = [0; 96];
    let length = account.read_at(&mut text, 0).ok()?;
    SchedStat::parse(std::str::from_utf8(text.get(..length)?).ok()?)
}

/// A stop of the whole process, that only SIGCONT ends.
const fn is_stopping(signal: i32) -> bool {
    matches!(
        signal,
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU
    )
}

/// The next that is to be told of what this thread traces; none if it traces nothing any more.
fn wait() -> Option<WaitResult> {
    loop {
        let mut status = 0;
        // Neither the tracees of another thread, nor children of this process that are not traced.
        let flags = libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: `status` lives until the call returns.
        let tid = unsafe { libc::waitpid(-1, &raw mut status, flags) };
        if let Ok(tid) = u32::try_from(tid) {
            return Some(if libc::WIFSTOPPED(status) {
                let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
                WaitResult::Stopped { tid, signal, event }
            } else {
                WaitResult::Ended { tid, status }
            });
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
}

/// Lets it go on. If it was killed meanwhile, that will be told.
fn resume(how: PtraceRequest, tid: u32, signal: i32) {
    // SAFETY: numbers only, about a thread that this one traces.
    unsafe { libc::ptrace(how, tid, ptr::null_mut::<libc::c_void>(), signal as usize) };
}
