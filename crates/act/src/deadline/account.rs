//! The books of bandwidth: what this actuator has handed out, and what it has taken back that the
//! kernel still counts.
//!
//! A task that leaves SCHED_DEADLINE is counted until its 0-lag time, which is never later than the
//! end of the period it was in. The kernel says only EBUSY; these books say whether waiting helps.

use std::collections::HashMap;

use onbeat_model::{Bandwidth, Instant, TaskId};

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

    /// Forgets whatever has settled by `now`.
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

    /// All bandwidth that this actuator's tasks hold, `but` aside.
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
