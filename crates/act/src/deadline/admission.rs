//! Asking the kernel for a reservation, and finding out why it said no.

use onbeat_model::{Instant, Refusal, Reservation, TaskId};

use super::account::Finding;
use super::recount::Leak;
use super::{DeadlineActuator, diagnosis};
use crate::attributes::{Attributes, Fair, Policy, kept_nice};
use crate::clock;
use crate::limits::Limits;
use crate::task;

impl DeadlineActuator {
    /// Gives `task`, which had `before` when it was first touched, the reservation; answers what
    /// was set.
    pub(super) fn admit(
        &mut self,
        task: TaskId,
        leader: Option<TaskId>,
        before: Attributes,
        reservation: Reservation,
    ) -> Result<Attributes, Refusal> {
        let set = Attributes::reserved(reservation, self.options.reclaim);
        self.announce(task, leader, before, set)?;
        let Err(mut error) = set.set(task.tid) else {
            self.others.nothing_suspected();
            return Ok(set);
        };
        let mut refusal = None;
        if error.raw_os_error() == Some(libc::EBUSY) {
            match self.make_room(task, reservation, clock::now()) {
                // Making room takes a while: the task may have ended meanwhile.
                Ok(()) if !task::is_alive(task) => refusal = Some(Refusal::Gone),
                Ok(()) => match set.set(task.tid) {
                    Ok(()) => {
                        self.others.nothing_suspected();
                        return Ok(set);
                    }
                    Err(again) => error = again,
                },
                Err(why) => refusal = Some(why),
            }
        }
        // A record that stays says that the task may have one setting more than it can have.
        let _ = self.state_file.refused(task);
        Err(refusal.unwrap_or_else(|| match error.raw_os_error() {
            Some(libc::EBUSY) => {
                self.others.recount_was_fruitless(clock::now());
                self.no_room(task, reservation)
            }
            Some(libc::EPERM) => diagnosis::not_permitted(task.tid, &self.limits),
            _ => diagnosis::unknown(task.tid, &error),
        }))
    }

    /// After `set` was given to a task that turns out to have ended: if its number had already gone
    /// to another, that one is made an ordinary task again, as all but a few are born.
    pub(super) fn undo_for_another(task: TaskId, set: &Attributes) {
        let is_another = task::identify(task.tid).is_ok_and(|now| now != task);
        if !is_another || !Attributes::get(task.tid).is_ok_and(|now| now == *set) {
            return;
        }
        let nice = kept_nice(task.tid).unwrap_or(0);
        let ordinary = Attributes {
            policy: Policy::Other(Fair { nice, slice_ns: 0 }),
            reset_on_fork: false,
        };
        let _ = ordinary.set(task.tid);
    }

    /// Writes down what is about to be done; without that, it is not done.
    fn announce(
        &mut self,
        task: TaskId,
        leader: Option<TaskId>,
        before: Attributes,
        set: Attributes,
    ) -> Result<(), Refusal> {
        let written = self.state_file.change(task, leader, before, set);
        written.map_err(|error| {
            Refusal::Other(format!(
                "task {task} is left as it is, because the state file {} could not be written \
                 ({error}): free some space there, or choose another directory",
                self.state_file.path().display()
            ))
        })
    }

    /// After EBUSY: makes room if that can be done at once, or else says why not.
    fn make_room(
        &mut self,
        task: TaskId,
        reservation: Reservation,
        now: Instant,
    ) -> Result<(), Refusal> {
        if self.others.is_stale(now) {
            let tasks = &self.tasks;
            self.others
                .look(now, |tid| tasks.keys().any(|ours| ours.tid == tid));
        }
        self.account.settle(now);
        let finding = self.account.judge(
            task,
            reservation.bandwidth(),
            self.limits.admissible(),
            self.others.foreign(),
        );
        match finding {
            Finding::FitsAt(until) => Err(Refusal::Settling { until }),
            Finding::DoesNotFit => {
                self.others.nothing_suspected();
                Err(self.no_room(task, reservation))
            }
            Finding::Fits => {
                if let Some(until) = self.account.all_settled_at() {
                    return Err(Refusal::Settling { until });
                }
                match self.others.suspect_leak(now) {
                    Leak::WaitUntil(until) => Err(Refusal::Settling { until }),
                    Leak::Unexplained => Err(self.no_room(task, reservation)),
                    Leak::Recount => {
                        // Where it may not be written, the second attempt tells.
                        let _ = self.others.recount(now);
                        self.limits = Limits::read_anew();
                        Ok(())
                    }
                }
            }
        }
    }

    fn no_room(&self, task: TaskId, reservation: Reservation) -> Refusal {
        diagnosis::no_room(
            reservation.bandwidth(),
            self.limits.admissible(),
            self.account.held_but(task),
            self.others.foreign(),
        )
    }
}
