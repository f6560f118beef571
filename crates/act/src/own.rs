//! onbeat's own thread has to run on a machine full of hogs: a loop that hears of an exhausted
//! budget a second late corrects nothing.
//!
//! It takes a low real-time priority (above those that it gives to others, if it does: they would
//! keep it from answering), and guards against itself: RLIMIT_RTTIME ends a real-time thread that
//! never sleeps, and its children start as ordinary tasks.

use std::io;

use crate::attributes::{Attributes, Fair, Policy, RealTime, kept_nice};

/// How long the thread may run under real-time priority without sleeping before the kernel sends
/// SIGXCPU: much longer than one turn of the loop, much shorter than a person's patience.
const LONGEST_RUN_US: u64 = 10_000_000;

/// How the calling thread was put ahead of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// The real-time priority.
    RealTime,
    /// Highest share among ordinary tasks: real-time priority was refused.
    Nice,
}

/// The real-time priority of a task whose boost says that it goes first.
pub(crate) const BOOSTED: u32 = 1;

/// The lowest that onbeat's own threads take: before every ordinary task and every boosted one.
pub const LOWEST: u32 = BOOSTED + 1;

/// Puts the calling thread ahead of ordinary tasks while it loads a tracer: that takes tens of
/// milliseconds, and the program that is to be run waits for it. Its children have the default, but
/// in [`start_ahead`].
///
/// # Errors
/// If that is not permitted; the thread then stays as it was.
pub fn load_first() -> io::Result<Precedence> {
    ahead(LOWEST)
}

/// Has what `start` starts go ahead as the calling thread does: a helper that onbeat waits for, and
/// that would wait for the machine's hogs before its first instruction. Never for programs of
/// others.
pub fn start_ahead<T>(start: impl FnOnce() -> T) -> T {
    let Some(own) = Attributes::get(0).ok().filter(|own| own.reset_on_fork) else {
        return start();
    };
    let inherited = Attributes {
        reset_on_fork: false,
        ..own
    };
    // Where it is refused, what is started is late, and nothing else.
    let _ = inherited.set(0);
    let started = start();
    let _ = own.set(0);
    started
}

/// Gives a process that the calling thread has forked for a program the nice value that this thread
/// was started with. The kernel gives 0 to what a real-time thread forks with reset on fork.
pub fn pass_nice_on(child: u32) {
    let is_real_time = Attributes::get(0).is_ok_and(|own| matches!(own.policy, Policy::Fifo(_)));
    if let Some(nice) = kept_nice(0).ok().filter(|&nice| is_real_time && nice != 0) {
        let inherited = Attributes {
            policy: Policy::Other(Fair { nice, slice_ns: 0 }),
            reset_on_fork: false,
        };
        // Where it is refused, the program begins as an ordinary one.
        let _ = inherited.set(child);
    }
}

/// Puts the calling thread ahead of ordinary tasks, and of those with a real-time priority below
/// `priority`, for as long as it lives. Programs are to be started before: they would inherit the
/// limit.
///
/// # Errors
/// If neither real-time priority nor nice -20 is permitted; the thread then stays as it was.
pub fn go_first(priority: u32) -> io::Result<Precedence> {
    limit_longest_run()?;
    ahead(priority)
}

fn ahead(priority: u32) -> io::Result<Precedence> {
    let real_time = Attributes {
        policy: Policy::Fifo(RealTime { priority }),
        reset_on_fork: true,
    };
    if real_time.set(0).is_ok() {
        return Ok(Precedence::RealTime);
    }
    largest_share().set(0).map(|()| Precedence::Nice)
}

const fn largest_share() -> Attributes {
    Attributes {
        policy: Policy::Other(Fair {
            nice: -20,
            slice_ns: 0,
        }),
        reset_on_fork: true,
    }
}

/// Lowers the soft limit alone, and never raises it.
fn limit_longest_run() -> io::Result<()> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid buffer.
    if unsafe { libc::getrlimit(libc::RLIMIT_RTTIME, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    limit.rlim_cur = limit.rlim_cur.min(LONGEST_RUN_US);
    // SAFETY: `limit` is a valid structure that setrlimit only reads.
    if unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
