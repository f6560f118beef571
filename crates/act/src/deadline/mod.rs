//! Reservations by SCHED_DEADLINE, the kernel's constant bandwidth server, and the way back.
//!
//! The way out of the policy makes this more than one system call. A task that has left is counted,
//! and keeps the state of its server, until its 0-lag time; one that is put back under the policy
//! before can be left throttled for good. So a task just given back is barred for about one period
//! ([`Refusal::Settling`]), and one whose runtime has just run out is first waited for.
//!
//! A raised runtime of a task that is throttled counts from its next replenishment.

use std::collections::{HashMap, HashSet};

use onbeat_model::{
    Actuator, Boost, Capacity, Instant, Refusal, Reservation, Speed, Speeds, Standing, TaskId,
};

mod account;
mod admission;
mod give_back;

use crate::attributes::{self, Attributes, Policy, taken_over};
use crate::boosts::Boosts;
use crate::cpufreq::Cpufreq;
use crate::kernel;
use crate::limits::{self, KernelLimits};
use crate::restore::{StateFile, StateRecord};
use crate::server::{SchedulerClock, Server, leave};
use crate::task;
use crate::watcher::HearsChanges;
use account::{Others, ReservationAccount};
use admission::Wish;
use onbeat_kernel::clock;

/// The most that a timer of the kernel is late before its task counts as settled: a tick at 100 Hz.
pub(crate) const MARGIN: onbeat_model::Span = onbeat_model::Span::from_ms(10);
/// How long dropping the actuator waits for tasks that are better waited for.
const LAST_PATIENCE: onbeat_model::Span = onbeat_model::Span::from_ms(200);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadlineOptions {
    /// Make each reservation a ceiling as well. Without this a task may also use bandwidth that no
    /// other reservation needs (GRUB, `SCHED_FLAG_RECLAIM`), as far as the kernel has that.
    pub hard: bool,
}

/// Puts reservations in force through SCHED_DEADLINE.
///
/// Dropping it gives every task back.
#[derive(Debug)]
pub struct DeadlineActuator {
    state_file: StateFile,
    /// Reservations are ceilings, too: chosen, or this kernel has no reclaiming.
    is_hard: bool,
    hard: HashSet<TaskId>,
    limits: KernelLimits,
    tasks: HashMap<TaskId, TaskOwnership>,
    account: ReservationAccount,
    others: Others,
    clock: Option<SchedulerClock>,
    cpufreq: Option<Cpufreq>,
    boosts: Boosts,
    hears: Option<Box<dyn HearsChanges>>,
}

#[derive(Debug)]
enum TaskOwnership {
    Held(ReservedTask),
    TakenOver,
}

#[derive(Clone, Copy, Debug)]
struct ReservedTask {
    leader: Option<TaskId>,
    before: Attributes,
    set: Attributes,
    reservation: Reservation,
    /// When the reservations it had before this one have certainly been forgotten.
    earlier_settled: Instant,
    /// Since when a give-back waits for the task's runtime to be replenished.
    waiting_since: Option<Instant>,
}

impl DeadlineActuator {
    #[must_use]
    pub fn new(state_file: StateFile, options: DeadlineOptions) -> Self {
        Self {
            state_file,
            is_hard: options.hard || !kernel::reclaims(),
            hard: HashSet::new(),
            limits: KernelLimits::read(),
            tasks: HashMap::new(),
            account: ReservationAccount::default(),
            others: Others::default(),
            clock: SchedulerClock::measure(),
            cpufreq: None,
            boosts: Boosts::default(),
            hears: None,
        }
    }

    #[must_use]
    pub fn watched_by(mut self, hears: impl HearsChanges + 'static) -> Self {
        self.hears = Some(Box::new(hears));
        self
    }

    fn tell<T>(
        &self,
        task: TaskId,
        is_given: bool,
        answer: Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if let Some(hears) = self.hears.as_ref().filter(|_| answer.is_ok()) {
            hears.changed(task, is_given);
        }
        answer
    }

    #[must_use]
    pub fn with_cpufreq(mut self, cpufreq: Cpufreq) -> Self {
        self.cpufreq = Some(cpufreq);
        self
    }

    #[must_use]
    pub fn recounts(&self) -> u64 {
        self.others.recounts()
    }

    fn look(&mut self, task: TaskId) -> Result<Attributes, Refusal> {
        attributes::of(task).inspect_err(|refusal| {
            if *refusal == Refusal::Gone {
                self.forget(task);
            }
        })
    }

    fn look_at_held(
        &mut self,
        task: TaskId,
    ) -> Result<(Attributes, Option<ReservedTask>), Refusal> {
        let now = self.look(task)?;
        match self.tasks.get(&task) {
            None => Ok((now, None)),
            Some(TaskOwnership::Held(held)) if held.set == now => Ok((now, Some(*held))),
            Some(_) => Err(self.take_over(task, now)),
        }
    }

    /// The task's reservation, if it has just that now: one system call. That its number went to
    /// another task since is not looked for.
    fn has_just_what_was_set(&self, task: TaskId) -> Option<ReservedTask> {
        match self.tasks.get(&task) {
            Some(TaskOwnership::Held(held))
                if Attributes::get(task.tid).is_ok_and(|now| now == held.set) =>
            {
                Some(*held)
            }
            _ => None,
        }
    }

    /// The same as [`look_at_held`](Self::look_at_held), before it is given something else: it is
    /// looked at again before anything is done.
    fn look_at_first(
        &mut self,
        task: TaskId,
    ) -> Result<(Attributes, Option<ReservedTask>), Refusal> {
        match self.has_just_what_was_set(task) {
            Some(held) => Ok((held.set, Some(held))),
            None => self.look_at_held(task),
        }
    }

    /// Another program gave the task what it has `now`, and keeps it until it ends.
    fn take_over(&mut self, task: TaskId, now: Attributes) -> Refusal {
        self.let_go(task);
        self.tasks.insert(task, TaskOwnership::TakenOver);
        taken_over(now)
    }

    fn wanted(&self, task: TaskId, reservation: Reservation) -> Attributes {
        let is_hard = self.is_hard || self.hard.contains(&task);
        Attributes::reserved(reservation, !is_hard)
    }

    fn forget(&mut self, task: TaskId) {
        self.follow_into_leader(task);
        self.let_go(task);
        self.tasks.remove(&task);
        self.hard.remove(&task);
    }

    /// A thread that executes another program takes the number of its process's leader, and its
    /// reservation along: there it is given back.
    fn follow_into_leader(&mut self, task: TaskId) {
        let Some(TaskOwnership::Held(held)) = self.tasks.get(&task) else {
            return;
        };
        let ReservedTask { set, before, .. } = *held;
        let Some(leader) = held.leader.filter(|&leader| task::is_alive(leader)) else {
            return;
        };
        let of_its_own = match self.tasks.get(&leader) {
            Some(TaskOwnership::Held(own)) => own.set == set,
            _ => false,
        };
        let wears_it = Attributes::get(leader.tid).is_ok_and(|now| now == set);
        if wears_it && !of_its_own && !task::is_alive(task) {
            let server = Server::read(leader);
            // If it fails, the state file tells of it still.
            let asleep = task::is_asleep(leader);
            if leave(leader, server, asleep, &set, &before).is_ok() {
                self.let_go(leader);
                self.tasks.remove(&leader);
            }
        }
    }

    /// The task's reservation, if it has one, is no longer this actuator's to give back; the kernel
    /// counts it for up to a period yet.
    fn let_go(&mut self, task: TaskId) {
        if let Some(TaskOwnership::Held(held)) = self.tasks.get(&task) {
            let until = held.settled_by(clock::now());
            self.leave_books(task, held.reservation, until);
        }
    }

    fn put_in_force(&mut self, task: TaskId, reservation: Reservation) -> Result<(), Refusal> {
        if let Some(objection) = self.limits.objection(reservation) {
            return Err(Refusal::Other(objection));
        }
        match self.boosts.set(&mut self.state_file, task, None) {
            // The other program has set a share of a CPU, which a reservation does not change.
            Ok(()) | Err(Refusal::TakenOver { .. }) => {}
            Err(refusal) => return Err(refusal),
        }
        let (now_has, held) = self.look_at_first(task)?;
        let now = clock::now();
        self.account.settle(now);
        let (leader, before, earlier_settled) = match held {
            Some(held) if held.set == self.wanted(task, reservation) => return Ok(()),
            Some(held) => (held.leader, held.before, held.settled_by(now)),
            None => {
                if let Some(until) = self.account.settles_at(task) {
                    return Err(Refusal::Settling { until });
                }
                if matches!(now_has.policy, Policy::Deadline(_)) {
                    return Err(taken_over(now_has));
                }
                (task::leader(task), now_has, Instant::ZERO)
            }
        };
        let wish = Wish {
            task,
            leader,
            before,
            now: now_has,
            reservation,
        };
        let set = self.admit(&wish)?;
        let held = ReservedTask {
            leader,
            before,
            set,
            reservation,
            earlier_settled,
            waiting_since: None,
        };
        self.account.hold(task, reservation.bandwidth());
        self.tasks.insert(task, TaskOwnership::Held(held));
        attributes::reached(task, &set).inspect_err(|_| self.forget(task))
    }

    /// The kernel counts `reservation`, which `task` no longer has, until the given time.
    fn leave_books(&mut self, task: TaskId, reservation: Reservation, until: Instant) {
        self.account.give_back(task, reservation.bandwidth(), until);
        self.note_done(task);
    }

    /// Not worth failing for: restoring finds out by itself that nothing is to be done.
    fn note_done(&mut self, task: TaskId) {
        let _ = self.state_file.write(StateRecord::Done { task });
    }
}

impl ReservedTask {
    /// When the kernel has forgotten this reservation, if the task leaves it at `now`.
    fn settled_by(&self, now: Instant) -> Instant {
        self.earlier_settled
            .max(now + self.reservation.period() + MARGIN)
    }
}

impl Actuator for DeadlineActuator {
    fn reserve(&mut self, task: TaskId, reservation: Reservation) -> Result<(), Refusal> {
        let answer = self.put_in_force(task, reservation);
        self.tell(task, true, answer)
    }

    fn release(&mut self, task: TaskId) -> Result<(), Refusal> {
        let answer = self.give_back(task, true);
        self.tell(task, false, answer)
    }

    fn standing(&mut self, task: TaskId) -> Standing {
        match self.look_at_held(task) {
            Ok((_, Some(held))) => {
                if self.unstick(task, held) {
                    Standing::Held(held.reservation)
                } else {
                    Standing::Own
                }
            }
            Ok((_, None)) => Standing::Own,
            Err(Refusal::Gone) => Standing::Gone,
            Err(_) => Standing::TakenOver,
        }
    }

    /// One system call. That the number has gone to another task since is not looked for: that task
    /// would have to have the very same reservation, of which it inherits nothing, and whatever is
    /// done to a task looks before it is done.
    fn standing_of_running(&mut self, task: TaskId) -> Standing {
        match self.has_just_what_was_set(task) {
            Some(held) => Standing::Held(held.reservation),
            None => self.standing(task),
        }
    }

    fn set_hard(&mut self, task: TaskId, is_hard: bool) -> Result<(), Refusal> {
        let was_hard = if is_hard {
            !self.hard.insert(task)
        } else {
            self.hard.remove(&task)
        };
        match self.tasks.get(&task) {
            Some(TaskOwnership::Held(held)) if was_hard != is_hard => {
                let reservation = held.reservation;
                self.reserve(task, reservation)
            }
            _ => Ok(()),
        }
    }

    fn ended(&mut self, task: TaskId) {
        self.forget(task);
        self.boosts.ended(&mut self.state_file, task);
        self.account.settle(clock::now());
    }

    fn capacity(&self) -> Capacity {
        self.limits.capacity()
    }

    fn measure(&mut self) {
        self.limits.cpus = limits::online();
    }

    fn recount(&mut self) -> bool {
        let now = clock::now();
        self.account.settle(now);
        if self.others.may_recount(now)
            && self.account.all_settled_at().is_none()
            && self.others.recount(now).is_ok()
        {
            self.limits = KernelLimits::read_anew();
            self.others.recount_helped();
        }
        self.others.take_helped()
    }

    fn boost(&mut self, task: TaskId, boost: Option<Boost>) -> Result<(), Refusal> {
        match self.tasks.get(&task) {
            Some(TaskOwnership::Held(_)) if boost.is_some() => {
                Err(Refusal::Other(format!("task {task} has a reservation")))
            }
            _ => {
                let answer = self.boosts.set(&mut self.state_file, task, boost);
                self.tell(task, boost.is_some(), answer)
            }
        }
    }

    fn speeds(&self) -> Option<Speeds> {
        self.cpufreq.as_ref().map(Cpufreq::speeds)
    }

    fn set_speed(&mut self, speed: Speed) -> Result<(), Refusal> {
        match &mut self.cpufreq {
            Some(cpufreq) => cpufreq.set(speed),
            None => Err(Refusal::NoSpeeds),
        }
    }

    fn release_speed(&mut self) -> Result<(), Refusal> {
        self.cpufreq.as_mut().map_or(Ok(()), Cpufreq::release)
    }
}

impl Drop for DeadlineActuator {
    fn drop(&mut self) {
        self.boosts.give_all_back(&mut self.state_file);
        self.release_all(LAST_PATIENCE);
    }
}
