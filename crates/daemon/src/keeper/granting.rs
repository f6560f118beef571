//! Reservations that are asked for. One that the kernel cannot give yet, because it still counts
//! the task's former one, is asked for again; the caller waits meanwhile.

use std::sync::Arc;

use onbeat_model::{Actuator, Instant, Refusal, Reservation, Sensor, Span, TaskId};

use super::{Keeper, Loop, answer};
use crate::book::{Grant, Holder};
use crate::fault::Fault;
use crate::person::Person;
use crate::request::{Caller, Reply};
use crate::target::{Status, Target};

/// A period of four seconds, the longest there is, and some.
const LONGEST_WAIT: Span = Span::from_secs(6);

/// Somebody waits for a reservation.
pub(super) struct Waiting {
    caller: Caller,
    target: Target,
    reservation: Reservation,
    reply: Reply<()>,
    again_at: Instant,
    until: Instant,
}

impl Keeper {
    pub(super) fn reserve<S: Sensor, A: Actuator>(
        &mut self,
        caller: Caller,
        target: Target,
        reservation: Reservation,
        reply: Reply<()>,
        the: &mut Loop<'_, S, A>,
    ) {
        let wait = Waiting {
            caller,
            target,
            reservation,
            reply,
            again_at: the.now,
            until: the.now + LONGEST_WAIT,
        };
        self.try_to_reserve(wait, the);
    }

    /// Those whose time has come.
    pub(super) fn ask_again<S: Sensor, A: Actuator>(&mut self, the: &mut Loop<'_, S, A>) {
        let waiting = std::mem::take(&mut self.waiting);
        for wait in waiting {
            if wait.again_at <= the.now {
                self.try_to_reserve(wait, the);
            } else {
                self.waiting.push(wait);
            }
        }
    }

    fn try_to_reserve<S: Sensor, A: Actuator>(&mut self, wait: Waiting, the: &mut Loop<'_, S, A>) {
        let tid = wait.target.task.id.tid;
        if wait.caller.client.is_gone() || !wait.target.is_alive() {
            let fault = Fault::NoSuchTask(format!("there is no task {tid} any more"));
            return answer(&wait.reply, Err(fault));
        }
        if let Err(fault) = self.in_order(&wait.caller, &wait.target, the.now) {
            return answer(&wait.reply, Err(fault));
        }
        match self.grant(&wait.caller, &wait.target, wait.reservation, the) {
            Err(Refusal::Settling { until }) if until < wait.until => self.waiting.push(Waiting {
                again_at: until,
                ..wait
            }),
            Err(refusal) => answer(&wait.reply, Err(Fault::of_refusal(tid, &refusal))),
            Ok(()) => answer(&wait.reply, Ok(())),
        }
    }

    /// Whether the call may take effect yet, or ever.
    fn in_order(&mut self, caller: &Caller, target: &Target, now: Instant) -> Result<(), Fault> {
        let (name, task) = (&caller.client.name, target.task.id);
        if self.order.admits(name, task, caller.serial, now) {
            Ok(())
        } else {
            Err(Fault::Failed(format!(
                "a later Reserve or Release of this connection for task {} was carried out already",
                task.tid
            )))
        }
    }

    fn grant<S: Sensor, A: Actuator>(
        &mut self,
        caller: &Caller,
        target: &Target,
        reservation: Reservation,
        the: &mut Loop<'_, S, A>,
    ) -> Result<(), Refusal> {
        let task = target.task;
        self.let_partner_go(task.id, the);
        let is_freed = |person: &Arc<Person>| person.is_exempt;
        if !caller.person.is_exempt
            && self
                .book
                .borrow()
                .ledger
                .person(task.id)
                .is_some_and(is_freed)
        {
            return Err(Refusal::OverQuota {
                left: onbeat_model::Bandwidth::ZERO,
                advice: "a rule of onbeat.toml, or root, decides about it: ask an administrator"
                    .to_owned(),
            });
        }
        let mut book = self.book.borrow_mut();
        if !book.grants.contains_key(&task.id) {
            let entered = book.ledger.enter(task.id, &caller.person);
            entered.map_err(|objection| objection.to_refusal(reservation))?;
        }
        // Asked before others make room.
        if let Err(objection) = book.ledger.admits(task.id, reservation) {
            if !book.grants.contains_key(&task.id) {
                book.ledger.leave(task.id);
            }
            return Err(objection.to_refusal(reservation));
        }
        let holder = Holder::Client(Arc::clone(&caller.client.name));
        let uid = target.uid;
        let grant = Grant { holder, task, uid };
        let former = book.grants.insert(task.id, grant);
        drop(book);
        let mut granted = the.controller.grant(task, reservation, the.now);
        if granted.is_ok() && !target.is_alive() {
            the.controller.take_back(task.id, the.now);
            granted = Err(Refusal::Gone);
        }
        let mut book = self.book.borrow_mut();
        match former {
            _ if granted.is_ok() => {}
            Some(former) => {
                book.grants.insert(task.id, former);
            }
            None => {
                book.grants.remove(&task.id);
                book.ledger.leave(task.id);
            }
        }
        granted
    }

    pub(super) fn release<S: Sensor, A: Actuator>(
        &mut self,
        caller: &Caller,
        target: &Target,
        the: &mut Loop<'_, S, A>,
    ) -> Result<(), Fault> {
        self.in_order(caller, target, the.now)?;
        let task = target.task.id;
        let book = self.book.borrow();
        let held = book.grants.get(&task).map(|grant| &grant.holder);
        let own = Holder::Client(Arc::clone(&caller.client.name));
        if held.is_none_or(|holder| *holder != own && !caller.person.is_root()) {
            return Err(Fault::NotHeld(format!(
                "no reservation for task {} was asked for from this connection",
                task.tid
            )));
        }
        drop(book);
        self.take_back(task, the);
        Ok(())
    }

    /// Threads that run another user's program by now (a set-user-ID one was executed): nobody who
    /// asked before has a say. Those that are tracked are noticed at once; these are looked at.
    pub(super) fn take_back_from_strangers<S: Sensor, A: Actuator>(
        &mut self,
        the: &mut Loop<'_, S, A>,
    ) {
        let book = self.book.borrow();
        let is_strangers = |grant: &&Grant| {
            let now = Status::read(grant.task.id.tid);
            now.is_some_and(|now| now.uid != Some(grant.uid))
        };
        let strangers = book.grants.values().filter(is_strangers);
        let strangers: Vec<TaskId> = strangers.map(|grant| grant.task.id).collect();
        drop(book);
        for task in strangers {
            self.take_back(task, the);
        }
    }

    /// Nobody holds what `task` was granted any more.
    pub(super) fn take_back<S: Sensor, A: Actuator>(
        &mut self,
        task: TaskId,
        the: &mut Loop<'_, S, A>,
    ) {
        if self.book.borrow_mut().grants.remove(&task).is_none() {
            return;
        }
        the.controller.take_back(task, the.now);
        self.teller.tell(the.controller, &self.book);
        self.book.borrow_mut().ledger.leave(task);
    }
}
