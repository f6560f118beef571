//! The books of bandwidth: what this actuator has handed out, and what it has taken back that the
//! kernel still counts.
//!
//! A task that leaves SCHED_DEADLINE is counted until its 0-lag time, which is never later than the
//! end of the period it was in. The kernel says only EBUSY; these books say whether waiting helps.

use std::collections::HashMap;
use std::{fs, io};

use onbeat_model::{Bandwidth, Instant, TaskId};

use crate::kernel::reserved_tasks;

/// The reservations of this actuator's tasks, and those that the kernel still counts of tasks that
/// left.
#[derive(Debug, Default)]
pub(super) struct ReservationAccount {
    held: HashMap<TaskId, Bandwidth>,
    settling: HashMap<TaskId, Settling>,
}

#[derive(Clone, Copy, Debug)]
struct Settling {
    bandwidth: Bandwidth,
    until: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoomFinding {
    /// By the books it fits now: the kernel counts something that is not there.
    Fits,
    /// It fits once what has been given back is no longer counted.
    FitsAt(Instant),
    DoesNotFit,
}

impl ReservationAccount {
    pub(super) fn hold(&mut self, task: TaskId, bandwidth: Bandwidth) {
        self.held.insert(task, bandwidth);
    }

    /// `task` holds nothing now, but the kernel counts `counted` of it until `until`, before which
    /// it must not be reserved again.
    pub(super) fn give_back(&mut self, task: TaskId, counted: Bandwidth, until: Instant) {
        self.held.remove(&task);
        let settling = Settling {
            bandwidth: counted,
            until,
        };
        self.settling.insert(task, settling);
    }

    pub(super) fn settle(&mut self, now: Instant) {
        self.settling.retain(|_, settling| settling.until > now);
    }

    /// Until when `task` must not be reserved again; none if it can be.
    pub(super) fn settles_at(&self, task: TaskId) -> Option<Instant> {
        self.settling.get(&task).map(|settling| settling.until)
    }

    /// When nothing of this actuator's is settling any more; none if nothing is.
    pub(super) fn all_settled_at(&self) -> Option<Instant> {
        self.settling.values().map(|settling| settling.until).max()
    }

    pub(super) fn held_but(&self, but: TaskId) -> Bandwidth {
        let others = self.held.iter().filter(|(task, _)| **task != but);
        others.map(|(_, &bandwidth)| bandwidth).sum()
    }

    /// Whether, of `admissible`, beside `foreign` reservations of others, `wanted` fits for `task`.
    pub(super) fn judge(
        &self,
        task: TaskId,
        wanted: Bandwidth,
        admissible: Bandwidth,
        foreign: Bandwidth,
    ) -> RoomFinding {
        let needed = wanted + self.held_but(task) + foreign;
        if needed > admissible {
            return RoomFinding::DoesNotFit;
        }
        let mut settling: Vec<Settling> = self.settling.values().copied().collect();
        settling.sort_by_key(|settling| settling.until);
        let mut counted: Bandwidth = settling.iter().map(|settling| settling.bandwidth).sum();
        let mut at = None;
        for next in settling {
            if needed + counted <= admissible {
                break;
            }
            counted = counted - next.bandwidth;
            at = Some(next.until);
        }
        at.map_or(RoomFinding::Fits, RoomFinding::FitsAt)
    }
}

// Works round bandwidth that leaked in the kernel's own account. A task that leaves SCHED_DEADLINE
// while asleep, after its 0-lag time, stays counted for good (`switched_from_dl` arms the timer
// that would uncount it only for a task on the run queue). Writing the kernel's limit anew, with
// the value it has, makes it recount (since 6.17; before, a leak stays until the next boot). That
// is done only when a leak shows, and not while something is settling: the recount forgets a
// settling task, and its timer then takes away what is no longer there.

/// The time between two looks at every task of the machine, and between two recounts: of 10,000
/// tasks, a look takes 2% of a CPU.
const EVERY: onbeat_model::Span = onbeat_model::Span::from_secs(5);
/// For how long a leak must show: what another program's task has just left settles in a period.
const SUSPECT_FOR: onbeat_model::Span = onbeat_model::Span::from_secs(1);
/// For how long the kernel is taken at its word after a recount that did not help.
const FRUITLESS_FOR: onbeat_model::Span = onbeat_model::Span::from_secs(60);

const LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";

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

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(share: f64) -> Bandwidth {
        Bandwidth::from_cpus(share)
    }

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn a_refusal_is_explained_by_what_is_still_settling() {
        let [a, b, c] = [1, 2, 3].map(TaskId::recorded);
        let mut account = ReservationAccount::default();
        account.hold(a, cpus(0.5));
        account.give_back(b, cpus(0.3), at(20));
        account.give_back(c, cpus(0.3), at(10));
        let judge = |account: &ReservationAccount, wanted| {
            account.judge(b, cpus(wanted), cpus(1.8), cpus(0.1))
        };
        assert_eq!(judge(&account, 0.6), RoomFinding::Fits);
        assert_eq!(judge(&account, 0.8), RoomFinding::FitsAt(at(10)));
        assert_eq!(judge(&account, 1.0), RoomFinding::FitsAt(at(20)));
        assert_eq!(judge(&account, 1.3), RoomFinding::DoesNotFit);
        assert_eq!(account.all_settled_at(), Some(at(20)));
        account.settle(at(10));
        assert_eq!(account.settles_at(c), None);
        assert_eq!(account.settles_at(b), Some(at(20)));
        assert_eq!(judge(&account, 0.8), RoomFinding::Fits);
    }

    #[test]
    fn a_task_that_changes_its_reservation_does_not_compete_with_itself() {
        let a = TaskId::recorded(1);
        let mut account = ReservationAccount::default();
        account.hold(a, cpus(1.0));
        let finding = account.judge(a, cpus(1.5), cpus(1.8), Bandwidth::ZERO);
        assert_eq!(finding, RoomFinding::Fits);
    }
}
