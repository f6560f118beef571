//! onbeat's own thread has to run on a machine full of hogs: a loop that hears of an exhausted
//! budget a second late corrects nothing.
//!
//! It takes a low real-time priority (above those that it gives to others, if it does: they would
//! keep it from answering), and its children start as ordinary tasks.
//!
//! # Giving way
//! A thread that goes first could keep a CPU for ever. The kernel's own code is enough for that: a
//! look-up of `/proc/TID` of a thread that is ending waits, without sleeping, until that one has
//! removed its entries (`shrink_dcache_parent`). If it has lost its CPU to the looking thread, and
//! no other CPU takes it, neither goes on, and no signal reaches them. So another thread of
//! onbeat's looks at the CPU time of the one that goes first. While that computes without a pause,
//! it is an ordinary thread.

use std::cell::Cell;
use std::time::Duration;
use std::{io, thread};

use onbeat_model::Boost;

use crate::attributes::{Attributes, Policy, RealTime, kept_nice};

/// How often it is looked whether the thread gives way: a person hardly notices as much.
const LOOK: Duration = Duration::from_millis(100);
/// The thread gives way after this CPU time between two looks. A thread without a pause has all of
/// most `LOOK`s, because the kernel keeps no more than 50 ms of a second from real-time threads
/// (`sched_rt_runtime_us`).
const WITHOUT_PAUSE: Duration = Duration::from_millis(80);
/// And goes first again after as little. Half of `WITHOUT_PAUSE`.
const WITH_PAUSES: Duration = Duration::from_millis(40);

thread_local! {
    static LOOKED_AT: Cell<bool> = const { Cell::new(false) };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    RealTime,
    /// Highest share among ordinary tasks: real-time priority was refused.
    Nice,
}

/// The lowest that onbeat's own threads take: before every ordinary task and every boosted one.
pub const LOWEST: u32 = Boost::HIGHEST_PRIORITY + 1;

/// The highest that there is: of the thread that looks at another one, for some microseconds.
pub(crate) const HIGHEST: u32 = 99;

/// Puts the calling thread ahead of ordinary tasks while it loads a tracer: that takes tens of
/// milliseconds, and the program that is to be run waits for it. Its children have the default, but
/// in [`start_ahead`].
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
        // Where it is refused, the program begins at nice 0.
        let _ = Attributes::ordinary(nice, false).set(child);
    }
}

/// Puts the calling thread ahead of ordinary tasks, and of those with a real-time priority below
/// `priority`, for as long as it lives. It [gives way](self#giving-way).
pub fn go_first(priority: u32) -> io::Result<Precedence> {
    let before = Attributes::get(0)?;
    let precedence = ahead(priority)?;
    if precedence == Precedence::RealTime && !LOOKED_AT.get() {
        if let Err(error) = give_way() {
            before.set(0)?;
            return Err(error);
        }
        LOOKED_AT.set(true);
    }
    Ok(precedence)
}

fn give_way() -> io::Result<()> {
    let mut clock = 0;
    // SAFETY: gettid and pthread_self take nothing, and `clock` is a valid buffer.
    let (tid, error) = unsafe {
        let error = libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock);
        (libc::gettid().unsigned_abs(), error)
    };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    let look = move || {
        block_signals();
        look_at(tid, clock);
    };
    let builder = thread::Builder::new().name("gives-way".to_owned());
    builder.spawn(look).map(drop)
}

/// Has the thread `tid` with this clock of CPU time give way, until it ends.
fn look_at(tid: u32, clock: libc::clockid_t) {
    // Where no priority is permitted that is above the thread's, the kernel's bound on all
    // real-time threads remains.
    let highest = real_time(HIGHEST).set(0);
    if highest.is_err()
        && let Some(priority) = priority_of(tid)
    {
        let _ = real_time(priority + 1).set(0);
    }
    // Its priority, when it gives way.
    let mut gives_way = None;
    let Some(mut before) = cpu_time(clock) else {
        return;
    };
    loop {
        thread::sleep(LOOK);
        let Some(total) = cpu_time(clock) else {
            return;
        };
        let used = total.saturating_sub(before);
        before = total;
        match gives_way {
            None if used > WITHOUT_PAUSE => {
                let priority = priority_of(tid);
                gives_way = priority.filter(|_| Attributes::ordinary(0, true).set(tid).is_ok());
            }
            Some(priority) if used < WITH_PAUSES && real_time(priority).set(tid).is_ok() => {
                gives_way = None;
            }
            _ => {}
        }
    }
}

fn priority_of(tid: u32) -> Option<u32> {
    match Attributes::get(tid).ok()?.policy {
        Policy::Fifo(RealTime { priority }) => Some(priority),
        _ => None,
    }
}

fn cpu_time(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid buffer.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return None;
    }
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
}

fn ahead(priority: u32) -> io::Result<Precedence> {
    if real_time(priority).set(0).is_ok() {
        return Ok(Precedence::RealTime);
    }
    Attributes::ordinary(-20, true)
        .set(0)
        .map(|()| Precedence::Nice)
}

pub(crate) const fn real_time(priority: u32) -> Attributes {
    Attributes {
        policy: Policy::Fifo(RealTime { priority }),
        reset_on_fork: true,
    }
}

pub(crate) fn block_signals() {
    // SAFETY: both are plain calls on a set of this function's.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}
