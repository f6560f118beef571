//! Listens to the probes of libonbeat in the tracked processes.
//!
//! A probe is in any file that a process maps to execute: its program, and libraries, also those
//! loaded later. The maps of a process are read when the process is new, when it has executed
//! another program, and then at growing distances: a library that is loaded later is heard after 2
//! s at the latest. The files of a program that `onbeat run` starts are known before, so it is
//! heard from its first instruction on. The kernel attaches to one process only, and others that
//! map the same file pay nothing.
//!
//! The processes decide how many mappings there are, and what the files hold. So a thread without
//! real-time priority does all of it, with limits (`ear`), and for root a process without rights
//! does the parsing (`parser`). The loop only tells this thread which processes there are, in whole
//! messages over a socket for some hundreds, without waiting. A message without room is sent in the
//! next turn.

pub(super) mod attach;
mod ear;
mod helper;
mod maps;
pub mod parser;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;

use onbeat_model::{Event, Task, TaskId};

use super::BpfError;
use crate::probes::Probe;
use ear::{Ear, Expected};
use onbeat_kernel::proc::started_ticks;
pub use parser::Parser;

/// How long the start of a program waits until its files are listened to. A hundred libraries take
/// some 20 ms.
const START: std::time::Duration = std::time::Duration::from_secs(2);

/// The thread's results.
#[derive(Debug, Default)]
struct ListenerResults {
    heard: AtomicUsize,
    refused: OnceLock<BpfError>,
}

/// A message to the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    /// Look at the maps of a process that started then.
    Look { pid: u32, started_ticks: u64 },
    /// Stop listening to the process.
    Forget { pid: u32 },
    /// Read the other channel.
    Expect,
}

impl Message {
    const SIZE: usize = 16;

    fn bytes(self) -> [u8; Self::SIZE] {
        let (kind, pid, ticks): (u32, _, _) = match self {
            Self::Look { pid, started_ticks } => (0, pid, started_ticks),
            Self::Forget { pid } => (1, pid, 0),
            Self::Expect => (2, 0, 0),
        };
        (u128::from(kind) | u128::from(pid) << 32 | u128::from(ticks) << 64).to_ne_bytes()
    }

    fn of(bytes: [u8; Self::SIZE]) -> Self {
        let word = u128::from_ne_bytes(bytes);
        let (pid, started_ticks) = ((word >> 32) as u32, (word >> 64) as u64);
        match word as u32 {
            0 => Self::Look { pid, started_ticks },
            1 => Self::Forget { pid },
            _ => Self::Expect,
        }
    }
}

/// Listens until it is dropped, which ends the thread.
#[derive(Debug)]
pub struct Listener {
    told: Arc<ListenerResults>,
    ear: UnixStream,
    expected: mpsc::Sender<Expected>,
    /// The last message about each process that found no room yet.
    untold: BTreeMap<u32, Message>,
    tracked: Tracked,
}

/// The tracked threads and their processes.
#[derive(Debug, Default)]
struct Tracked {
    /// Each with its process.
    threads: HashMap<TaskId, u32>,
    /// How many of them each process has.
    processes: HashMap<u32, usize>,
}

impl Tracked {
    /// Takes in a thread that is tracked or has another name. True if the maps of its process are
    /// worth a look: the process is new, or may have executed another program, whose only thread
    /// has the process's number. A program's further threads map nothing by their beginning.
    fn heard(&mut self, task: &Task) -> bool {
        let count = self.processes.entry(task.pid).or_default();
        let is_new = *count == 0;
        *count += usize::from(self.threads.insert(task.id, task.pid).is_none());
        is_new || task.id.tid == task.pid
    }

    /// Forgets a thread. Returns its process, if it was its last thread.
    fn forget(&mut self, task: TaskId) -> Option<u32> {
        let pid = self.threads.remove(&task)?;
        let count = self.processes.get_mut(&pid)?;
        *count -= 1;
        (*count == 0).then(|| {
            self.processes.remove(&pid);
            pid
        })
    }
}

impl Listener {
    /// Listens to the probes for which `cookie` has a number, from 0 to 15. `program` gets it.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn new(
        cookie: fn(Probe) -> Option<u32>,
        program: OwnedFd,
        parser: Parser,
    ) -> io::Result<Self> {
        Self::start(cookie, program, parser, Ear::listen)
    }

    /// The same with nice -20, for a program that onbeat was started for: its probes do not wait
    /// behind hogs.
    pub(super) fn ahead(
        cookie: fn(Probe) -> Option<u32>,
        program: OwnedFd,
        parser: Parser,
    ) -> io::Result<Self> {
        Self::start(cookie, program, parser, Ear::listen_ahead)
    }

    fn start(
        cookie: fn(Probe) -> Option<u32>,
        program: OwnedFd,
        parser: Parser,
        listen: fn(Ear, &UnixStream, &mpsc::Receiver<Expected>),
    ) -> io::Result<Self> {
        let (ear, commands) = UnixStream::pair()?;
        ear.set_nonblocking(true)?;
        let (expected, expectations) = mpsc::channel();
        let told = Arc::new(ListenerResults::default());
        let listening = Ear::new(cookie, program, parser, Arc::clone(&told));
        thread::Builder::new()
            .name("onbeat-ear".into())
            .spawn(move || listen(listening, &commands, &expectations))?;
        Ok(Self {
            told,
            ear,
            expected,
            untold: BTreeMap::new(),
            tracked: Tracked::default(),
        })
    }

    /// Takes in new processes, those that execute another program, and those that have gone.
    pub(super) fn hear(&mut self, events: &[Event]) {
        for event in events {
            match event {
                Event::Tracked { task, .. } | Event::Renamed { task, .. }
                    if self.tracked.heard(task) =>
                {
                    self.look_soon(task.pid);
                }
                Event::Exited { task, .. } => self.forget_thread(*task),
                _ => {}
            }
        }
        self.tell();
    }

    /// Forgets a thread that is no longer tracked.
    pub(super) fn forget_thread(&mut self, task: TaskId) {
        if let Some(pid) = self.tracked.forget(task) {
            self.forget(pid);
        }
    }

    /// Has the maps of `pid` looked at.
    pub fn look_soon(&mut self, pid: u32) {
        if let Some(started_ticks) = started_ticks(pid) {
            let look = Message::Look { pid, started_ticks };
            self.untold.insert(pid, look);
            self.tell();
        }
    }

    /// Stops listening to `pid`.
    pub fn forget(&mut self, pid: u32) {
        self.untold.insert(pid, Message::Forget { pid });
        self.tell();
    }

    /// Listens to `files`, which the process `pid` is about to execute, before this returns. The
    /// kernel sets the probes as the files are mapped.
    pub fn expect(&mut self, pid: u32, files: Vec<PathBuf>) {
        let (done, is_done) = mpsc::channel();
        self.look_soon(pid);
        let expected = Expected { pid, files, done };
        if self.untold.is_empty()
            && self.expected.send(expected).is_ok()
            && self.ear.write_all(&Message::Expect.bytes()).is_ok()
        {
            // Where that takes longer, the first jobs are not heard.
            let _ = is_done.recv_timeout(START);
        }
    }

    /// The first reason why a probe is not listened to.
    #[must_use]
    pub fn refused(&self) -> Option<&BpfError> {
        self.told.refused.get()
    }

    /// The number of probes that are listened to, over all processes.
    #[must_use]
    pub fn heard(&self) -> usize {
        self.told.heard.load(Ordering::Relaxed)
    }

    fn tell(&mut self) {
        while let Some(next) = self.untold.first_entry() {
            // A message is written whole or not at all.
            match self.ear.write_all(&next.get().bytes()) {
                Ok(()) => next.remove(),
                Err(_) => return,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::Name;

    use super::*;

    #[test]
    fn a_process_is_looked_at_when_it_is_new_or_may_have_executed_another_program() {
        let task = |tid, pid| Task {
            id: TaskId::recorded(tid),
            pid,
            comm: Name::default(),
        };
        let (leader, thread) = (task(7, 7), task(8, 7));
        let mut tracked = Tracked::default();
        assert!(tracked.heard(&leader));
        assert!(!tracked.heard(&thread));
        assert!(!tracked.heard(&thread), "it gives itself a name");
        assert!(tracked.heard(&leader), "perhaps it executes a program");
        assert_eq!(tracked.forget(leader.id), None);
        assert_eq!(tracked.forget(thread.id), Some(7));
        assert_eq!(tracked.forget(thread.id), None);
        assert!(tracked.heard(&thread), "attached to in the middle");
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let (pid, started_ticks) = (u32::MAX, u64::MAX - 1);
        for message in [
            Message::Look { pid, started_ticks },
            Message::Forget { pid },
            Message::Expect,
        ] {
            assert_eq!(Message::of(message.bytes()), message);
        }
    }
}
