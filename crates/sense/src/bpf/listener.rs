//! Listens to the probes of libonbeat in the processes that are tracked.
//!
//! The probes stand in the programs themselves, in whatever files a process maps to execute: its own,
//! and libraries, also those it loads later. So the maps of a process are looked at when it is first
//! heard of, when it has executed another program, and from then on at growing distances: a library
//! that is loaded later is heard after two seconds at the latest. Of a program that is about to be executed
//! the files are known before, so that it is heard from its first instruction on. The kernel attaches to one
//! process only; others that map the same file pay nothing.
//!
//! How many mappings there are, and what the files hold, is up to the processes. So a thread without real-time priority does all
//! of it (`ear`), with limits, and the loop that hears events only tells it which processes there are: in whole messages
//! over a socket that holds some hundreds, without waiting. What finds no room is told with the next turn.

mod attach;
mod ear;
mod maps;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use onbeat_model::{Event, TaskId};

use super::Error;
use crate::probes::Probe;
use crate::workload::started_ticks;
use ear::{Ear, Expected};

/// How long the start of a program waits until its files are listened to: a hundred libraries take some 20 ms.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the thread has found.
#[derive(Debug, Default)]
struct Told {
    heard: AtomicUsize,
    refused: OnceLock<Error>,
}

/// What the thread is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    /// The maps of a process are worth a look; it started then.
    Look { pid: u32, started_ticks: u64 },
    /// Nobody wants to hear the process any more.
    Forget { pid: u32 },
    /// There is something in the other channel.
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

/// What is listened to. Dropping it ends the thread.
#[derive(Debug)]
pub struct Listener {
    told: Arc<Told>,
    ear: UnixStream,
    expected: mpsc::Sender<Expected>,
    /// What found no room yet: of each process the last.
    untold: BTreeMap<u32, Message>,
    /// The tracked threads, each with its process.
    threads: HashMap<TaskId, u32>,
    /// How many of them each process has.
    processes: HashMap<u32, usize>,
}

impl Listener {
    /// Listens to the probes that `cookie` has a number for, from 0 to 15, by which `program` knows them.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn new(cookie: fn(Probe) -> Option<u32>, program: OwnedFd) -> io::Result<Self> {
        Self::start(cookie, program, Ear::listen)
    }

    /// The same for programs that onbeat was started for: they need not wait for the listener behind hogs.
    pub(super) fn ahead(cookie: fn(Probe) -> Option<u32>, program: OwnedFd) -> io::Result<Self> {
        Self::start(cookie, program, Ear::listen_ahead)
    }

    fn start(
        cookie: fn(Probe) -> Option<u32>,
        program: OwnedFd,
        listen: fn(Ear, &UnixStream, &mpsc::Receiver<Expected>),
    ) -> io::Result<Self> {
        let (ear, commands) = UnixStream::pair()?;
        ear.set_nonblocking(true)?;
        let (expected, expectations) = mpsc::channel();
        let told = Arc::new(Told::default());
        let listening = Ear::new(cookie, program, Arc::clone(&told));
        thread::Builder::new()
            .name("onbeat-ear".into())
            .spawn(move || listen(listening, &commands, &expectations))?;
        Ok(Self {
            told,
            ear,
            expected,
            untold: BTreeMap::new(),
            threads: HashMap::new(),
            processes: HashMap::new(),
        })
    }

    /// Takes notice of the processes that come to be tracked, or execute another program, and of those that have gone.
    pub(super) fn hear(&mut self, events: &[Event]) {
        for event in events {
            match event {
                Event::Tracked { task, .. } | Event::Renamed { task, .. } => {
                    if self.threads.insert(task.id, task.pid).is_none() {
                        *self.processes.entry(task.pid).or_default() += 1;
                    }
                    self.look_soon(task.pid);
                }
                Event::Exited { task, .. } => self.forget_thread(*task),
                _ => {}
            }
        }
        self.tell();
    }

    /// The thread is not tracked any more.
    pub(super) fn forget_thread(&mut self, task: TaskId) {
        let Some(pid) = self.threads.remove(&task) else {
            return;
        };
        if let Some(count) = self.processes.get_mut(&pid) {
            *count -= 1;
            if *count == 0 {
                self.processes.remove(&pid);
                self.forget(pid);
            }
        }
    }

    /// The maps of `pid` are worth a look.
    pub fn look_soon(&mut self, pid: u32) {
        if let Some(started_ticks) = started_ticks(pid) {
            let look = Message::Look { pid, started_ticks };
            self.untold.insert(pid, look);
            self.tell();
        }
    }

    /// Nobody wants to hear `pid` any more.
    pub fn forget(&mut self, pid: u32) {
        self.untold.insert(pid, Message::Forget { pid });
        self.tell();
    }

    /// The process `pid` is about to execute a program that maps `files`: listens to them, before this returns. The kernel
    /// sets the probes as the files are mapped.
    pub fn expect(&mut self, pid: u32, files: Vec<PathBuf>) {
        let (done, is_done) = mpsc::channel();
        self.look_soon(pid);
        let expected = Expected { pid, files, done };
        if self.untold.is_empty()
            && self.expected.send(expected).is_ok()
            && self.ear.write_all(&Message::Expect.bytes()).is_ok()
        {
            // Where that takes longer, the first jobs are not heard.
            let _ = is_done.recv_timeout(PATIENCE);
        }
    }

    /// Why a probe could not be listened to, the first time that happened.
    #[must_use]
    pub fn refused(&self) -> Option<&Error> {
        self.told.refused.get()
    }

    /// How many places of probes are listened to, over all processes.
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
    use super::*;

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
