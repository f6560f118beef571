//! Asking the kernel for a reservation, and finding out why it said no: it only has numbers, and
//! one of them, EPERM, means three different things.

use onbeat_model::{Instant, Refusal, Reservation, TaskId};

use super::account::{LeakReaction, RoomFinding};
use super::{DeadlineActuator, TaskOwnership};
use crate::attributes::Attributes;
use crate::limits::{KernelLimits, allowed_cpus, may_reserve};
use crate::restore::StateRecord;
use crate::task;
use onbeat_kernel::clock;

#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) task: TaskId,
    pub(super) leader: Option<TaskId>,
    pub(super) before: Attributes,
    pub(super) now: Attributes,
    pub(super) reservation: Reservation,
}

enum No {
    Refused(Refusal),
    Kernel(std::io::Error),
}

impl DeadlineActuator {
    pub(super) fn admit(&mut self, wish: &Wish) -> Result<Attributes, Refusal> {
        let set = self.wanted(wish.task, wish.reservation);
        self.announce(wish, set)?;
        let busy =
            |no: &No| matches!(no, No::Kernel(error) if error.raw_os_error() == Some(libc::EBUSY));
        let mut answer = self.try_to_set(wish, set);
        if answer.as_ref().is_err_and(busy) {
            answer = match self.make_room(wish, clock::now()) {
                Ok(()) => self.try_to_set(wish, set),
                Err(why) => Err(No::Refused(why)),
            };
            if answer.as_ref().is_err_and(busy) {
                self.others.recount_was_fruitless(clock::now());
            } else if answer.is_ok() {
                self.others.recount_helped();
            }
        }
        let Err(no) = answer else {
            self.others.nothing_suspected();
            return Ok(set);
        };
        // A record that stays says that the task may have one setting more than it can have.
        let _ = self
            .state_file
            .write(StateRecord::Refused { task: wish.task });
        Err(match no {
            No::Refused(why) => why,
            No::Kernel(error) => match error.raw_os_error() {
                Some(libc::EBUSY) => self.no_room(wish),
                Some(libc::EPERM) if may_reserve() => not_permitted(wish.task.tid, &self.limits),
                _ => task::refused(wish.task.tid, &error),
            },
        })
    }

    /// Sets the task's scheduling, unless it is not as it was when it was looked at: what was done
    /// since (writing a file, walking through all tasks) may have taken long.
    fn try_to_set(&mut self, wish: &Wish, set: Attributes) -> Result<(), No> {
        let now = self.look(wish.task).map_err(No::Refused)?;
        if now != wish.now {
            let held = matches!(self.tasks.get(&wish.task), Some(TaskOwnership::Held(_)));
            return Err(No::Refused(if held {
                self.take_over(wish.task, now)
            } else {
                Refusal::Other(format!(
                    "task {} has just been given {now} by another program: ask again for it",
                    wish.task
                ))
            }));
        }
        set.set(wish.task.tid).map_err(No::Kernel)
    }

    /// Writes down what is about to be done; without that, it is not done.
    fn announce(&mut self, wish: &Wish, set: Attributes) -> Result<(), Refusal> {
        let Wish {
            task,
            leader,
            before,
            ..
        } = *wish;
        self.state_file.announce(task, leader, before, set)
    }

    /// After EBUSY: makes room if that can be done at once, or else says why not.
    fn make_room(&mut self, wish: &Wish, now: Instant) -> Result<(), Refusal> {
        if self.others.is_stale(now) {
            let tasks = &self.tasks;
            self.others
                .look(now, |tid| tasks.keys().any(|ours| ours.tid == tid));
        }
        self.account.settle(now);
        let finding = self.account.judge(
            wish.task,
            wish.reservation.bandwidth(),
            self.limits.admissible(),
            self.others.foreign(),
        );
        match finding {
            RoomFinding::FitsAt(until) => Err(Refusal::Settling { until }),
            RoomFinding::DoesNotFit => {
                self.others.nothing_suspected();
                Err(self.no_room(wish))
            }
            RoomFinding::Fits => {
                if let Some(until) = self.account.all_settled_at() {
                    return Err(Refusal::Settling { until });
                }
                match self.others.suspect_leak(now) {
                    LeakReaction::WaitUntil(until) => Err(Refusal::Settling { until }),
                    LeakReaction::Unexplained => Err(self.no_room(wish)),
                    LeakReaction::Recount => {
                        // Where it may not be written, the second attempt tells.
                        let _ = self.others.recount(now);
                        self.limits = KernelLimits::read_anew();
                        Ok(())
                    }
                }
            }
        }
    }

    fn no_room(&self, wish: &Wish) -> Refusal {
        let (ours, foreign) = (self.account.held_but(wish.task), self.others.foreign());
        let admissible = self.limits.admissible();
        let free = admissible - ours - foreign;
        Refusal::NoRoom {
            wanted: wish.reservation.bandwidth(),
            advice: format!(
                "of the {admissible} that the kernel admits, other tasks of onbeat hold {ours} and \
                 others' reservations {foreign}, which leaves {free}: ask for less, or end another \
                 reservation"
            ),
        }
    }
}

/// Why `sched_setattr` answered EPERM to a reservation for the task `tid`, though this process may
/// change scheduling.
fn not_permitted(tid: u32, limits: &KernelLimits) -> Refusal {
    match allowed_cpus(tid) {
        Some((list, count)) if count < limits.cpus => Refusal::NarrowAffinity {
            advice: format!(
                "task {tid} may run on CPU {list} alone, and the kernel reserves only on all {} \
                 CPUs together: widen it with 'taskset -pc 0-{} {tid}', or give these CPUs a \
                 cpuset of their own (cpuset.cpus.partition=root in cgroup v2) and move the task \
                 there",
                limits.cpus,
                limits.cpus.saturating_sub(1)
            ),
        },
        Some(_) => Refusal::NotPermitted {
            advice: format!(
                "the kernel refused task {tid} though the privilege is there and its affinity is \
                 whole: see 'onbeat doctor' whether reservations are switched off; inside a \
                 container, give it CAP_SYS_NICE outside of a user namespace"
            ),
        },
        None => Refusal::Gone,
    }
}
