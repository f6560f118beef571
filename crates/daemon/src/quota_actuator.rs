//! An actuator that keeps all users within their quotas: every reservation goes through it, by any
//! client and after any change of the loop's. It also notices when another program gives a task
//! under a reservation another nice level, which shows nowhere until the reservation is over.

use std::collections::HashMap;
use std::sync::Arc;

use onbeat_act::DeadlineActuator;
use onbeat_act::attributes::{Attributes, Policy, kept_nice};
use onbeat_kernel::clock::{self, TICK};
use onbeat_model::{
    Actuator, Bandwidth, Boost, Capacity, Instant, Refusal, Reservation, Speed, Speeds, Standing,
    TaskId,
};
use onbeat_sense::bpf::{End, Ends};

use crate::account::Account;
use crate::registry::{Registry, SharedRegistry};

#[derive(Debug)]
pub struct QuotaActuator {
    inner: DeadlineActuator,
    registry: SharedRegistry,
    ends: Ends,
    nice: HashMap<TaskId, i32>,
    /// The nice levels that other programs changed, to be logged.
    reniced: Vec<Reniced>,
}

/// A task to which another program gave another nice level while it had a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reniced {
    pub task: TaskId,
    /// Its nice level until then.
    pub before: i32,
    pub now: i32,
}

impl QuotaActuator {
    /// `inner`, as far as the registry's quotas go; `ends` tells how tasks end.
    pub fn new(inner: DeadlineActuator, registry: SharedRegistry, ends: Ends) -> Self {
        Self {
            inner,
            registry,
            ends,
            nice: HashMap::new(),
            reniced: Vec::new(),
        }
    }

    pub(crate) fn take_reniced(&mut self) -> Vec<Reniced> {
        std::mem::take(&mut self.reniced)
    }

    /// The task has a reservation: if it has another nice level than it had, this is noted.
    fn look_at_nice(&mut self, task: TaskId) {
        let Ok(now) = kept_nice(task.tid) else {
            return;
        };
        let before = self.nice.insert(task, now).unwrap_or(now);
        if before != now {
            self.reniced.push(Reniced { task, before, now });
        }
    }

    fn charge(&self, task: TaskId, held: Option<Reservation>) {
        let registry = &mut *self.registry.borrow_mut();
        let ledger = &mut registry.ledger;
        // The end of one that is gone is still to be known.
        if held.is_none() && ledger.holds(task) {
            self.ends.forget(task);
        }
        ledger.charge(task, held);
        registry.settle_lending(task);
    }

    /// The task has another policy by other hands than ours.
    fn taken_over(&mut self, task: TaskId) {
        self.nice.remove(&task);
        let registry = &mut *self.registry.borrow_mut();
        let ledger = &mut registry.ledger;
        if ledger.holds(task) {
            self.ends.forget(task);
        }
        ledger.taken_over(task);
        registry.settle_lending(task);
    }

    fn gone(&mut self, task: TaskId) {
        self.nice.remove(&task);
        let registry = &mut *self.registry.borrow_mut();
        registry.ledger.gone(task);
        registry.settle_lending(task);
    }

    pub(crate) fn settle_ended(&mut self, now: Instant) {
        let end = |task| self.ends.of(task).or_else(|| end_of_zombie(task));
        let has_left = |task| Some(end(task)? == End::Left);
        let ledger = &mut self.registry.borrow_mut().ledger;
        for task in ledger.settle_ended(now, has_left) {
            self.ends.forget(task);
        }
    }

    fn noticed(&mut self, task: TaskId, standing: Standing) -> Standing {
        match standing {
            Standing::Held(_) => self.look_at_nice(task),
            Standing::TakenOver => self.taken_over(task),
            Standing::Own => {
                self.nice.remove(&task);
                self.charge(task, None);
            }
            Standing::Gone => self.gone(task),
        }
        standing
    }
}

pub(crate) const BARRED: &str = "it lent its priority by a lock too long, or to another user";

/// Until when the task is one that may end at once, as those of a shell script do: 10 to 20 ms. In
/// `/proc`, a reader of a task that is about to be gone spins until it is, and a reader with a
/// real-time priority may keep the CPU from it meanwhile.
fn new_until(task: TaskId) -> Option<Instant> {
    let (now, new) = (clock::now(), TICK * 2);
    let age = TICK * clock::ticks_at(now).saturating_sub(task.started_ticks);
    (age < new).then(|| now + (new - age))
}

/// How the task ended, if its parent has not asked yet for the status that it left.
fn end_of_zombie(task: TaskId) -> Option<End> {
    let stat = onbeat_act::task::stat(task.tid)?;
    if !stat.is_dead() || stat.started_ticks != task.started_ticks {
        return None;
    }
    Some(match Attributes::get(task.tid).ok()?.policy {
        Policy::Deadline(_) => End::Reserved,
        _ => End::Left,
    })
}

/// The scheduling that another program gave the task, if it has a real-time priority and neither a
/// request nor a rule with `adopt` wants a reservation for it: PipeWire, RealtimeKit or an
/// administrator decides about it.
fn others(registry: &Registry, task: TaskId) -> Option<Attributes> {
    if registry.explicit.contains_key(&task)
        || registry.raised.contains_key(&task)
        || registry.adopts(task)
        || registry.ledger.is_boosted(task)
    {
        return None;
    }
    let now = Attributes::get(task.tid).ok()?;
    matches!(now.policy, Policy::Fifo(_) | Policy::RoundRobin(_)).then_some(now)
}

impl Actuator for QuotaActuator {
    fn reserve(&mut self, task: TaskId, reservation: Reservation) -> Result<(), Refusal> {
        self.admits(task, reservation)?;
        if let Some(now) = others(&self.registry.borrow(), task) {
            return Err(Refusal::TakenOver {
                now: now.to_string(),
            });
        }
        let registry = self.registry.borrow();
        if registry.barred.contains(&task) {
            let advice = BARRED.to_owned();
            return Err(Refusal::NotPermitted { advice });
        }
        if let Some(until) = registry.goes_without_until(task) {
            return Err(Refusal::Settling { until });
        }
        let is_ceiling = registry.is_ceiling(task, reservation);
        drop(registry);
        self.inner.set_hard(task, is_ceiling)?;
        let is_held = self.registry.borrow().ledger.holds(task);
        self.ends.watch(task);
        let answer = self.inner.reserve(task, reservation);
        match &answer {
            Ok(()) => {
                self.charge(task, Some(reservation));
                self.look_at_nice(task);
            }
            Err(Refusal::TakenOver { .. }) => self.taken_over(task),
            Err(Refusal::Gone) => self.gone(task),
            Err(_) => {}
        }
        if answer.is_err() && !is_held {
            self.ends.forget(task);
        }
        answer
    }

    fn admits(&self, task: TaskId, reservation: Reservation) -> Result<(), Refusal> {
        let admitted = self.registry.borrow().ledger.admits(task, reservation);
        admitted.map_err(|error| error.to_refusal(reservation))
    }

    fn release(&mut self, task: TaskId) -> Result<(), Refusal> {
        let answer = self.inner.release(task);
        match &answer {
            Ok(()) => {
                if self.nice.contains_key(&task) {
                    self.look_at_nice(task);
                }
                self.nice.remove(&task);
                self.charge(task, None);
            }
            Err(Refusal::Gone) => self.gone(task),
            Err(Refusal::TakenOver { .. }) => self.taken_over(task),
            Err(_) => {}
        }
        answer
    }

    fn standing(&mut self, task: TaskId) -> Standing {
        let standing = self.inner.standing(task);
        self.noticed(task, standing)
    }

    fn standing_of_running(&mut self, task: TaskId) -> Standing {
        let standing = self.inner.standing_of_running(task);
        self.noticed(task, standing)
    }

    fn set_hard(&mut self, task: TaskId, is_hard: bool) -> Result<(), Refusal> {
        self.inner.set_hard(task, is_hard)
    }

    fn ended(&mut self, task: TaskId) {
        self.inner.ended(task);
        self.gone(task);
    }

    /// As far as the CPU time goes that its owner may use above ordinary priority. A thread with a
    /// priority from here keeps that.
    fn boost(&mut self, task: TaskId, boost: Option<Boost>) -> Result<(), Refusal> {
        let registry = self.registry.borrow();
        let is_boosted = registry.ledger.is_boosted(task);
        if boost.is_some() && !is_boosted {
            let has_priority = registry.raised.contains_key(&task);
            if has_priority
                || registry.barred.contains(&task)
                || registry.ledger.account(task).is_none()
            {
                return Err(Refusal::NoBoosts);
            }
            let until = registry.ledger.unboosted_until(task);
            if let Some(until) = until.or_else(|| new_until(task)) {
                return Err(Refusal::Settling { until });
            }
        }
        // Nothing but the loop would bound a real-time priority, and a PI lock passes it on.
        let is_exempt = |account: &Arc<Account>| account.is_exempt;
        let may_go_first = registry.ledger.account(task).is_some_and(is_exempt);
        drop(registry);
        let boost = boost.map(|boost| Boost {
            priority: if may_go_first { boost.priority } else { 0 },
            ..boost
        });
        let answer = self.inner.boost(task, boost);
        let is_boosted = boost.is_some() && answer.is_ok();
        let registry = &mut *self.registry.borrow_mut();
        registry.ledger.set_boosted(task, is_boosted);
        registry.settle_lending(task);
        answer
    }

    fn capacity(&self) -> Capacity {
        let capacity = self.inner.capacity();
        let leaked = self.registry.borrow().ledger.leaked();
        Capacity {
            admissible: capacity.admissible - leaked,
            ..capacity
        }
    }

    fn measure(&mut self) {
        self.inner.measure();
        let leaked = self.registry.borrow().ledger.leaked();
        if leaked > Bandwidth::ZERO && self.inner.recount() {
            self.registry.borrow_mut().ledger.recounted();
        }
    }

    fn speeds(&self) -> Option<Speeds> {
        self.inner.speeds()
    }

    fn set_speed(&mut self, speed: Speed) -> Result<(), Refusal> {
        self.inner.set_speed(speed)
    }

    fn release_speed(&mut self) -> Result<(), Refusal> {
        self.inner.release_speed()
    }
}
