//! The requests of RealtimeKit's clients. A thread gets at once what RealtimeKit would have given
//! it, which stays under all that follows, and is tracked: in need, it may have a reservation as
//! any other thread. If it has none, it has what RealtimeKit would have given it. Where the kernel
//! withholds real-time priorities, the reservation is all that it gets.
//!
//! One that has a reservation when it asks gets its priority when that is over: the priority below
//! one cannot be known.
//!
//! A client asks once. So what it has outlives the service: the next one takes it over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onbeat_act::{Effect, Given, Priorities, Priority};
use onbeat_model::{Follow, Refusal, TaskId};

use super::partners;
use super::tracking;
use super::turn::Turn;
use crate::account::Account;
use crate::directory;
use crate::fault::Fault;
use crate::quota_actuator::BARRED;
use crate::registry::{Holder, SharedRegistry};
use crate::request::Caller;
use crate::target::{Status, Target};

/// The owner of a task when it got a priority.
#[derive(Clone, Copy, Debug)]
pub(super) struct RaisedFor {
    pid: u32,
    uid: u32,
}

/// The tasks that asked for a real-time priority or a nice level, and those that are to get or to
/// lose theirs.
#[derive(Debug)]
pub(super) struct RealTimePriorities {
    /// The priorities in force, with the state file.
    priorities: Priorities,
    /// The priorities that tasks are to have as soon as their reservation is over.
    rising: BTreeMap<TaskId, Given>,
    raised_for: BTreeMap<TaskId, RaisedFor>,
    /// Tasks that are to lose their priority as soon as they have lost their reservation.
    lowering: BTreeSet<TaskId>,
}

impl RealTimePriorities {
    pub(super) const fn new(priorities: Priorities) -> Self {
        Self {
            priorities,
            rising: BTreeMap::new(),
            raised_for: BTreeMap::new(),
            lowering: BTreeSet::new(),
        }
    }

    pub(super) fn prioritise(
        &mut self,
        caller: &Caller,
        target: &Target,
        priority: Priority,
        turn: &mut Turn<'_>,
    ) -> Result<(), Fault> {
        let task = target.task.id;
        if turn.registry.borrow().barred.contains(&task) {
            return Err(Fault::NotPermitted(BARRED.to_owned()));
        }
        self.lowering.remove(&task);
        // From now on it is tracked for its own sake, and charged to the caller.
        partners::untrack(task, turn);
        let known = self.raised().contains(&task);
        if !known {
            let ledger = &mut turn.registry.borrow_mut().ledger;
            let entered = ledger.enter(task, &caller.account);
            entered.map_err(|error| Fault::OverQuota(error.to_string()))?;
            // It could use more yet, or lend it, and is not to lose what it gets for that.
            if let Some((whose, quota)) = ledger.used_up(task)
                && !ledger.holds(task)
            {
                ledger.leave(task);
                return Err(Fault::OverQuota(whose.used_up(quota)));
            }
        }
        let given = Given {
            priority,
            payer: caller.account.uid,
            owner: target.uid,
        };
        // A boost is not to be put back later.
        turn.controller.end_boosts(task, None, turn.now);
        let held = turn.registry.borrow().ledger.holds(task);
        if held {
            self.rising.insert(task, given);
            self.priorities.promise(task, given);
        } else {
            match self.priorities.raise(task, given) {
                Ok(Effect::InForce) => {}
                Ok(Effect::Withheld) => tell_withheld(task, caller.account.uid, turn),
                Err(refusal) => {
                    if !known {
                        turn.registry.borrow_mut().ledger.leave(task);
                    }
                    return Err(Fault::of_refusal(task.tid, &refusal));
                }
            }
        }
        self.look_after(given, target, &caller.account, turn)
    }

    /// The task has its priority, or will: it is tracked.
    fn look_after(
        &mut self,
        given: Given,
        target: &Target,
        account: &Arc<Account>,
        turn: &mut Turn<'_>,
    ) -> Result<(), Fault> {
        let task = target.task.id;
        let (pid, uid) = (target.task.pid, target.uid);
        self.raised_for.insert(task, RaisedFor { pid, uid });
        // Start times are told in hundredths of a second: the number may have gone to another task
        // in the same one.
        if !target.is_alive() {
            self.lower(task, turn.registry);
            return Err(Fault::of_refusal(task.tid, &Refusal::Gone));
        }
        let mut registry = turn.registry.borrow_mut();
        registry.raised.insert(task, given.priority);
        registry.settle_lending(task);
        drop(registry);
        if let Priority::RealTime(_) = given.priority {
            // A task that cannot be tracked keeps its priority, as it would have under RealtimeKit.
            let tracked =
                tracking::track_for(Holder::RealtimeKit, account, target, Follow::Threads, turn);
            if let Err(fault) = tracked
                && turn.publisher.may_write(account.uid, turn.now)
            {
                tracing::warn!(
                    tid = task.tid,
                    comm = %target.task.comm,
                    "a thread with real-time priority cannot be tracked: {fault}"
                );
            }
        }
        Ok(())
    }

    /// The tasks that an earlier service gave a priority are looked after as if they had just
    /// asked. Those that are another user's by now, or beyond a quota, get back what they had
    /// before.
    pub(super) fn adopt(&mut self, turn: &mut Turn<'_>) {
        let given: Vec<(TaskId, Given)> = self.priorities.given().collect();
        let payers: BTreeSet<u32> = given.iter().map(|(_, given)| given.payer).collect();
        let mut is_answered = true;
        let mut find = |uid: u32| {
            // One that does not answer is waited for once.
            let account = is_answered.then(|| zbus::block_on(directory::find(uid)));
            let account = account.flatten();
            is_answered = account.is_some();
            // The user's own quota then counts, and no group's.
            let account = account.unwrap_or_else(|| Arc::new(Account::of_no_group(uid)));
            (uid, account)
        };
        let payers: BTreeMap<u32, Arc<Account>> = payers.into_iter().map(&mut find).collect();
        for (task, given) in given {
            let Some(account) = payers.get(&given.payer) else {
                continue;
            };
            let adopted = self.adopt_one(task, given, account, turn);
            match adopted {
                Ok(()) => tracing::info!(
                    tid = task.tid,
                    "thread {task}: keeps the priority that an earlier onbeat gave it"
                ),
                Err(why) => {
                    self.lower(task, turn.registry);
                    tracing::warn!(
                        tid = task.tid,
                        "thread {task}: loses the priority that an earlier onbeat gave it: {why}"
                    );
                }
            }
        }
    }

    fn adopt_one(
        &mut self,
        task: TaskId,
        given: Given,
        account: &Arc<Account>,
        turn: &mut Turn<'_>,
    ) -> Result<(), Fault> {
        let target = Target::find(task.tid, None)?;
        if target.task.id != task || target.uid != given.owner {
            return Err(Fault::of_refusal(task.tid, &Refusal::Gone));
        }
        let entered = turn.registry.borrow_mut().ledger.enter(task, account);
        entered.map_err(|error| Fault::OverQuota(error.to_string()))?;
        self.look_after(given, &target, account, turn)
    }

    /// The tasks that asked for a priority, also for the one that they had anyway.
    fn raised(&self) -> BTreeSet<TaskId> {
        let asked = self.raised_for.keys().copied();
        asked.chain(self.priorities.tasks()).collect()
    }

    pub(super) fn lower_all(&mut self, registry: &SharedRegistry) {
        for task in self.raised() {
            self.lower(task, registry);
        }
    }

    /// Those that asked for a priority while they had a reservation, which is over: below it, they
    /// had what they had before.
    pub(super) fn raise_after_reservation(&mut self, turn: &mut Turn<'_>) {
        let registry = turn.registry.borrow();
        let is_over = |task: &&TaskId| !registry.ledger.holds(**task);
        let over = self.rising.keys().filter(is_over);
        let over: Vec<TaskId> = over.copied().collect();
        drop(registry);
        for task in over {
            let given = self.rising.remove(&task);
            let raised = given.map(|given| self.priorities.raise(task, given));
            let uid = self.raised_for.get(&task).map_or(0, |raised| raised.uid);
            match raised {
                Some(Err(refusal))
                    if refusal != Refusal::Gone && turn.publisher.may_write(uid, turn.now) =>
                {
                    tracing::warn!(
                        tid = task.tid,
                        "task {task} does not get the priority that it asked for: {refusal}"
                    );
                }
                _ => {}
            }
        }
    }

    /// Those whose reservation was not given back yet when they were to get back what they had.
    pub(super) fn retry_lowering(&mut self, registry: &SharedRegistry) {
        for task in std::mem::take(&mut self.lowering) {
            self.lower(task, registry);
        }
    }

    /// Those that run another user's program by now: as with reservations, earlier requests have no
    /// effect.
    pub(super) fn lower_other_owners(&mut self, registry: &SharedRegistry) {
        let is_strangers = |(task, raised): &(&TaskId, &RaisedFor)| {
            Status::read(task.tid).is_some_and(|now| now.uid != Some(raised.uid))
        };
        let strangers = self.raised_for.iter().filter(is_strangers);
        let strangers: Vec<TaskId> = strangers.map(|(task, _)| *task).collect();
        for task in strangers {
            self.lower(task, registry);
        }
    }

    /// Another user's program runs in the process.
    pub(super) fn lower_all_of(&mut self, pid: u32, registry: &SharedRegistry) {
        let raised = self.raised_for.iter();
        let tasks = raised.filter(|(_, raised)| raised.pid == pid);
        let tasks: Vec<TaskId> = tasks.map(|(task, _)| *task).collect();
        for task in tasks {
            self.lower(task, registry);
        }
    }

    fn lower(&mut self, task: TaskId, registry: &SharedRegistry) {
        self.rising.remove(&task);
        match self.priorities.put_back(task) {
            Ok(()) => {
                self.raised_for.remove(&task);
                let mut registry = registry.borrow_mut();
                registry.raised.remove(&task);
                registry.ledger.leave(task);
                registry.settle_lending(task);
            }
            Err(refusal) if refusal.retry_at().is_some() => {
                self.lowering.insert(task);
            }
            Err(refusal) => {
                // It is said once; the task stays in the list of those that have a priority from
                // here.
                self.raised_for.remove(&task);
                tracing::warn!(
                    tid = task.tid,
                    "task {task} cannot get its former scheduling back: {refusal}"
                );
            }
        }
    }

    pub(super) fn forget(&mut self, gone: impl Fn(&TaskId) -> bool, registry: &SharedRegistry) {
        for task in self.raised().into_iter().filter(gone) {
            self.priorities.forget(task);
            self.rising.remove(&task);
            self.lowering.remove(&task);
            self.raised_for.remove(&task);
            let mut registry = registry.borrow_mut();
            registry.raised.remove(&task);
            registry.ledger.leave(task);
            registry.settle_lending(task);
        }
    }
}

fn tell_withheld(task: TaskId, payer: u32, turn: &mut Turn<'_>) {
    if turn.publisher.may_write(payer, turn.now) {
        tracing::info!(
            tid = task.tid,
            "thread {task}: the kernel gives no real-time priority in its control group; it has \
             reservations alone"
        );
    }
}
