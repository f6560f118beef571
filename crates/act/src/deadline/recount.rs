//! Works round bandwidth that leaked in the kernel's own account.
//!
//! A task that leaves SCHED_DEADLINE while asleep, after its 0-lag time, stays counted for good
//! (`switched_from_dl` arms the timer that would uncount it only for a task on the run queue).
//! Writing the kernel's limit anew, with the value it has, makes it recount (since 6.17; before, a
//! leak stays until the next boot). That is done only when
//! a leak shows, and not while something is settling: the recount forgets a settling task, and its
//! timer then takes away what is no longer there.

use std::fs;
use std::io;

use onbeat_model::{Bandwidth, Instant};

use crate::kernel::reserved_tasks;

/// The time between two looks at every task of the machine, and between two recounts: of 10,000
/// tasks, a look takes 2% of a CPU.
const EVERY: onbeat_model::Span = onbeat_model::Span::from_secs(5);
/// For how long a leak must show: what another program's task has just left settles in a period.
const SUSPECT_FOR: onbeat_model::Span = onbeat_model::Span::from_secs(1);
/// For how long the kernel is taken at its word after a recount that did not help.
const FRUITLESS_FOR: onbeat_model::Span = onbeat_model::Span::from_secs(60);

const LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// The reservations of others, as last looked up, and the known leaks.
#[derive(Debug, Default)]
pub(super) struct Others {
    looked_at: Option<Instant>,
    foreign: Bandwidth,
    suspected_since: Option<Instant>,
    recounted_at: Option<Instant>,
    fruitless_until: Option<Instant>,
    recounts: u64,
    /// On this kernel a recount helps: it has.
    helps: bool,
    /// One has since the last answer.
    helped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeakReaction {
    WaitUntil(Instant),
    Recount,
    Unexplained,
}

impl Others {
    pub(super) fn is_stale(&self, now: Instant) -> bool {
        self.looked_at.is_none_or(|at| now.since(at) >= EVERY)
    }

    /// Looks up all reservations on the machine that are not `ours`.
    pub(super) fn look(&mut self, now: Instant, ours: impl Fn(u32) -> bool) {
        self.looked_at = Some(now);
        self.foreign = reserved_tasks()
            .filter(|(tid, _)| !ours(*tid))
            .map(|(_, bandwidth)| bandwidth)
            .sum();
    }

    pub(super) fn foreign(&self) -> Bandwidth {
        self.foreign
    }

    /// By the books there is room, the kernel says there is none: what to do about it.
    pub(super) fn suspect_leak(&mut self, now: Instant) -> LeakReaction {
        if self.fruitless_until.is_some_and(|until| now < until) {
            return LeakReaction::Unexplained;
        }
        let since = *self.suspected_since.get_or_insert(now);
        let earliest = self.recounted_at.map_or(now, |at| at + EVERY);
        let until = (since + SUSPECT_FOR).max(earliest);
        if now < until {
            LeakReaction::WaitUntil(until)
        } else {
            LeakReaction::Recount
        }
    }

    /// The kernel still says no: it knows of something that is not known here.
    pub(super) fn recount_was_fruitless(&mut self, now: Instant) {
        self.fruitless_until = Some(now + FRUITLESS_FOR);
    }

    pub(super) fn recount_helped(&mut self) {
        (self.helps, self.helped) = (true, true);
    }

    pub(super) fn take_helped(&mut self) -> bool {
        std::mem::take(&mut self.helped)
    }

    pub(super) fn may_recount(&self, now: Instant) -> bool {
        self.helps && self.recounted_at.is_none_or(|at| now.since(at) >= EVERY)
    }

    /// There is no room by the books either.
    pub(super) fn nothing_suspected(&mut self) {
        self.suspected_since = None;
    }

    pub(super) fn recounts(&self) -> u64 {
        self.recounts
    }

    pub(super) fn recount(&mut self, now: Instant) -> io::Result<()> {
        self.recounted_at = Some(now);
        self.suspected_since = None;
        self.recounts += 1;
        let limit = fs::read(LIMIT)?;
        fs::write(LIMIT, limit)
    }
}
