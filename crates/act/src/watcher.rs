//! A thread that takes away what tasks must no longer have, whatever else runs: it has a small
//! reservation of its own, and an heir of a reservation has a later deadline soon. Where that is
//! refused it has the highest real-time priority. It allocates nothing while it looks.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use onbeat_kernel::clock;
use onbeat_model::{Boost, Instant, Reservation, Span, TaskId};

use crate::attributes::{Attributes, Fair, Policy, RealTime};
use crate::boosts::{DEFAULT, LOWERED};
use crate::own::{HIGHEST, block_signals, real_time};
use crate::restore::{owner_by_name, parse_state};
use crate::task;

/// How often it looks at least: as often as boosts are counted.
const EVERY: Duration = Duration::from_millis(5);
/// Its own reservation for that.
const RUNTIME: Span = Span::from_us(200);
/// The loop stands still if it turns later than it said by this, and so many looks see that.
const LATE: Span = Span::from_ms(50);
const LOOKS_LATE: u32 = 3;

#[derive(Clone, Debug)]
pub struct Watcher {
    thread: Thread,
    due: Arc<AtomicU64>,
}

pub trait HearsChanges: fmt::Debug {
    /// The thread was given something, or lost it, but perhaps for a reservation.
    fn changed(&self, task: TaskId, is_given: bool);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loses {
    /// A boost, which nothing bounds but the loop.
    Boost,
    /// What others can inherit: a reservation or a real-time priority.
    Lendable,
}

impl Watcher {
    /// Starts the thread, which calls `look` again and again, and says whether the loop stands
    /// still. While there is nothing to watch, `look` says so, and the thread sleeps. In between it
    /// is in `wait`, for so long unless something is to be looked at before, which is true.
    pub fn start(
        wait: impl Fn(Duration) -> bool + Send + 'static,
        mut look: impl FnMut(bool) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let due = Arc::new(AtomicU64::new(u64::MAX));
        let turns = Arc::clone(&due);
        let watch = move || {
            block_signals();
            go_before_all();
            let mut late = 0;
            loop {
                let is_woken = wait(EVERY);
                // Not by the clock alone: a machine that stood still has stopped both.
                let is_late = clock::now().as_ns() > turns.load(Ordering::Relaxed);
                late = if is_late {
                    late + u32::from(!is_woken)
                } else {
                    0
                };
                if !look(late >= LOOKS_LATE) {
                    thread::park();
                }
            }
        };
        let builder = thread::Builder::new().name("watcher".to_owned());
        let thread = builder.spawn(watch)?.thread().clone();
        Ok(Self { thread, due })
    }

    pub fn wake(&self) {
        self.thread.unpark();
    }

    pub fn turned(&self, next: Instant) {
        let due = (next + LATE).as_ns();
        self.due.store(due, Ordering::Relaxed);
    }
}

/// Has the task `tid` be an ordinary one if it has such a thing of onbeat's. False if that failed.
#[must_use]
pub fn lower(tid: u32, loses: Loses) -> bool {
    let Ok(now) = Attributes::get(tid) else {
        return true;
    };
    let lowered = match (now.policy, loses) {
        // These are put back when the loop goes on.
        (Policy::Other(Fair { nice: ..0, .. }), Loses::Boost) => now.with_nice(0),
        (Policy::RoundRobin(RealTime { priority }), Loses::Boost)
            if priority <= Boost::HIGHEST_PRIORITY =>
        {
            LOWERED
        }
        (Policy::RoundRobin(_) | Policy::Deadline(_), Loses::Lendable) => DEFAULT,
        _ => return true,
    };
    !now.reset_on_fork || lowered.set(tid).is_ok()
}

/// Ends for now the boosts that the process `pid` tells of in its state files in `directory`. It
/// puts them in force again itself.
pub fn end_boosts_of(directory: &Path, pid: u32) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let owner = |path: &PathBuf| owner_by_name(path).map(|owner| owner.tid);
    let files = entries.map(|entry| entry.path());
    for text in files.filter(|path| owner(path) == Some(pid)).map(fs::read) {
        let state = parse_state(&text.unwrap_or_default());
        let tasks = state.changes.into_keys();
        for task in tasks.filter(|task| task::is_alive(*task)) {
            // It may have ended by now.
            let _ = lower(task.tid, Loses::Boost);
        }
    }
}

fn go_before_all() {
    let period = Span::from_ns(u64::try_from(EVERY.as_nanos()).unwrap_or(u64::MAX));
    let reserved = Reservation::new(RUNTIME, period, period)
        .is_ok_and(|own| Attributes::reserved(own, false).set(0).is_ok());
    if !reserved {
        // Where that is refused too, it is as late as others.
        let _ = real_time(HIGHEST).set(0);
    }
}
