//! What clients of RealtimeKit ask for. A thread gets at once what RealtimeKit would have given it,
//! which stays under all that follows; is tracked; and gets a reservation on trial, in which its
//! rhythm can show. If it has none, or the kernel refuses, it has what RealtimeKit would have given
//! it.
//!
//! One that has a reservation when it asks gets its priority when that is over: nobody can say what
//! lies below one.
//!
//! A client asks once. So what it has outlives the service: the next one takes it over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onbeat_act::{Given, Priority};
use onbeat_control::Controller;
use onbeat_model::{Actuator, Follow, Instant, Refusal, Sensor, TaskId};

use super::{Keeper, Loop, Trial};
use crate::book::Holder;
use crate::directory;
use crate::fault::Fault;
use crate::gate::Gate;
use crate::person::Person;
use crate::request::Caller;
use crate::target::{Status, Target};

/// Whose a task was when it got a priority.
#[derive(Clone, Copy, Debug)]
pub(super) struct RaisedFor {
    pid: u32,
    uid: u32,
}

impl Keeper {
    pub(super) fn prioritise<S: Sensor, A: Actuator>(
        &mut self,
        caller: &Caller,
        target: &Target,
        priority: Priority,
        the: &mut Loop<'_, S, A>,
    ) -> Result<(), Fault> {
        let task = target.task.id;
        self.lowering.remove(&task);
        // From now on it is there for its own sake, and charged to who asks.
        self.let_partner_go(task, the);
        let known = self.raised().contains(&task);
        if !known {
            let mut book = self.book.borrow_mut();
            let entered = book.ledger.enter(task, &caller.person);
            entered.map_err(|objection| Fault::OverQuota(objection.to_string()))?;
        }
        let given = Given {
            priority,
            payer: caller.person.uid,
            owner: target.uid,
        };
        let held = self.book.borrow().ledger.holds(task);
        if held {
            self.rising.insert(task, given);
            self.priorities.promise(task, given);
        } else if let Err(refusal) = self.priorities.raise(task, given) {
            if !known {
                self.book.borrow_mut().ledger.leave(task);
            }
            return Err(Fault::of_refusal(task.tid, &refusal));
        }
        self.look_after(given, target, &caller.person, the)
    }

    /// The task has its priority, or will: it is tracked, and tried out.
    fn look_after<S: Sensor, A: Actuator>(
        &mut self,
        given: Given,
        target: &Target,
        person: &Arc<Person>,
        the: &mut Loop<'_, S, A>,
    ) -> Result<(), Fault> {
        let task = target.task.id;
        let (pid, uid) = (target.task.pid, target.uid);
        self.raised_for.insert(task, RaisedFor { pid, uid });
        // Start times are told in hundredths of a second: the number may have gone to another task
        // in the same one.
        if !target.is_alive() {
            self.lower(task);
            return Err(Fault::of_refusal(task.tid, &Refusal::Gone));
        }
        if let Priority::RealTime(_) = given.priority {
            self.book.borrow_mut().raised.insert(task);
            // What cannot be tracked keeps its priority, as it would have under RealtimeKit.
            let tracked = self.track_for(Holder::RealtimeKit, person, target, Follow::Threads, the);
            match tracked {
                Ok(()) => {
                    let Trial { share, period } = self.trial;
                    the.controller.try_out(target.task, share, period, the.now);
                }
                Err(fault) if self.teller.may_write(person.uid, the.now) => tracing::warn!(
                    tid = task.tid,
                    comm = %target.task.comm,
                    "a thread with real-time priority cannot be tracked: {fault}"
                ),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// The tasks that an earlier service gave a priority are looked after as if they had just
    /// asked. Those that are another user's by now, or beyond a quota, get back what they had
    /// before.
    pub fn adopt<S: Sensor, A: Actuator>(
        &mut self,
        sensor: &mut Gate<S>,
        controller: &mut Controller<A>,
    ) {
        let now = sensor.now();
        let mut the = Loop {
            sensor,
            controller,
            now,
        };
        let given: Vec<(TaskId, Given)> = self.priorities.given().collect();
        let payers: BTreeSet<u32> = given.iter().map(|(_, given)| given.payer).collect();
        let mut is_answered = true;
        let mut find = |uid: u32| {
            // One that does not answer is waited for once.
            let person = is_answered.then(|| zbus::block_on(directory::find(uid)));
            let person = person.flatten();
            is_answered = person.is_some();
            // The user's own quota then counts, and no group's.
            let person = person.unwrap_or_else(|| Arc::new(Person::of_no_group(uid)));
            (uid, person)
        };
        let payers: BTreeMap<u32, Arc<Person>> = payers.into_iter().map(&mut find).collect();
        for (task, given) in given {
            let Some(person) = payers.get(&given.payer) else {
                continue;
            };
            let adopted = self.adopt_one(task, given, person, &mut the);
            match adopted {
                Ok(()) => tracing::info!(
                    tid = task.tid,
                    "thread {task}: keeps the priority that an earlier onbeat gave it"
                ),
                Err(why) => {
                    self.lower(task);
                    tracing::warn!(
                        tid = task.tid,
                        "thread {task}: loses the priority that an earlier onbeat gave it: {why}"
                    );
                }
            }
        }
    }

    fn adopt_one<S: Sensor, A: Actuator>(
        &mut self,
        task: TaskId,
        given: Given,
        person: &Arc<Person>,
        the: &mut Loop<'_, S, A>,
    ) -> Result<(), Fault> {
        let target = Target::find(task.tid, None)?;
        if target.task.id != task || target.uid != given.owner {
            return Err(Fault::of_refusal(task.tid, &Refusal::Gone));
        }
        let entered = self.book.borrow_mut().ledger.enter(task, person);
        entered.map_err(|objection| Fault::OverQuota(objection.to_string()))?;
        self.look_after(given, &target, person, the)
    }

    /// The tasks that asked for a priority, also for the one that they had anyway.
    fn raised(&self) -> BTreeSet<TaskId> {
        let asked = self.raised_for.keys().copied();
        asked.chain(self.priorities.tasks()).collect()
    }

    /// Every thread gets back what it had before it asked.
    pub(super) fn reset<S: Sensor, A: Actuator>(&mut self, the: &mut Loop<'_, S, A>) {
        self.forget_holder(&Holder::RealtimeKit, the);
        for task in self.raised() {
            self.lower(task);
        }
    }

    /// Those that asked for a priority while they had a reservation, which is over: below it, they
    /// had what they had before.
    pub(super) fn raise_again(&mut self, now: Instant) {
        let book = self.book.borrow();
        let is_over = |task: &&TaskId| !book.ledger.holds(**task);
        let over = self.rising.keys().filter(is_over);
        let over: Vec<TaskId> = over.copied().collect();
        drop(book);
        for task in over {
            let given = self.rising.remove(&task);
            let raised = given.map(|given| self.priorities.raise(task, given));
            let uid = self.raised_for.get(&task).map_or(0, |raised| raised.uid);
            match raised {
                Some(Err(refusal))
                    if refusal != Refusal::Gone && self.teller.may_write(uid, now) =>
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
    pub(super) fn lower_again(&mut self) {
        for task in std::mem::take(&mut self.lowering) {
            self.lower(task);
        }
    }

    /// Those that run another user's program by now: as with reservations, nobody who asked before
    /// has a say.
    pub(super) fn lower_strangers(&mut self) {
        let is_strangers = |(task, raised): &(&TaskId, &RaisedFor)| {
            Status::read(task.tid).is_some_and(|now| now.uid != Some(raised.uid))
        };
        let strangers = self.raised_for.iter().filter(is_strangers);
        let strangers: Vec<TaskId> = strangers.map(|(task, _)| *task).collect();
        for task in strangers {
            self.lower(task);
        }
    }

    /// Another user's program runs in the process.
    pub(super) fn lower_all_of(&mut self, pid: u32) {
        let raised = self.raised_for.iter();
        let tasks = raised.filter(|(_, raised)| raised.pid == pid);
        let tasks: Vec<TaskId> = tasks.map(|(task, _)| *task).collect();
        for task in tasks {
            self.lower(task);
        }
    }

    fn lower(&mut self, task: TaskId) {
        self.rising.remove(&task);
        match self.priorities.put_back(task) {
            Ok(()) => {
                self.raised_for.remove(&task);
                let mut book = self.book.borrow_mut();
                book.raised.remove(&task);
                book.ledger.leave(task);
            }
            Err(refusal) if refusal.retry_at().is_some() => {
                self.lowering.insert(task);
            }
            Err(refusal) => {
                // It is said once; the task stays in the list of those that have a priority from
                // here.
                self.raised_for.remove(&task);
                tracing::warn!(tid = task.tid, "task {task} cannot be put back: {refusal}");
            }
        }
    }

    /// Tasks that have ended.
    pub(super) fn forget_raised(&mut self, gone: impl Fn(&TaskId) -> bool) {
        for task in self.raised().into_iter().filter(gone) {
            self.priorities.forget(task);
            self.rising.remove(&task);
            self.lowering.remove(&task);
            self.raised_for.remove(&task);
            let mut book = self.book.borrow_mut();
            book.raised.remove(&task);
            book.ledger.leave(task);
        }
    }
}
