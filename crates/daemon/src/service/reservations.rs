//! Reservations that are asked for. One that the kernel cannot give yet, because it still counts
//! the task's former one, is asked for again; the caller waits meanwhile.

use std::sync::Arc;

use onbeat_model::{Instant, Refusal, Reservation, TaskId};

use super::call_order::CallOrder;
use super::partners;
use super::turn::Turn;
use crate::account::Account;
use crate::fault::Fault;
use crate::registry::{ExplicitReservation, Holder};
use crate::request::{About, Caller, Reply, answer};
use crate::target::{Status, Target};

/// How long a caller waits for a reservation that the kernel cannot give yet. A task's former one
/// is counted until its 0-lag time, a period later: of four seconds, the longest there is.
const LONGEST_WAIT: onbeat_model::Span = onbeat_model::Span::from_secs(6);

#[derive(Debug)]
struct Waiting {
    about: About,
    reservation: Reservation,
    reply: Reply<()>,
    again_at: Instant,
    until: Instant,
}

/// The reservations that callers wait for, and which of their calls may take effect yet.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    waiting: Vec<Waiting>,
    order: CallOrder,
}

impl Reservations {
    pub(super) fn reserve(
        &mut self,
        about: About,
        reservation: Reservation,
        reply: Reply<()>,
        turn: &mut Turn<'_>,
    ) {
        let wait = Waiting {
            about,
            reservation,
            reply,
            again_at: turn.now,
            until: turn.now + LONGEST_WAIT,
        };
        self.try_to_reserve(wait, turn);
    }

    /// Tries again those whose time has come.
    pub(super) fn retry(&mut self, turn: &mut Turn<'_>) {
        let waiting = std::mem::take(&mut self.waiting);
        for wait in waiting {
            if wait.again_at <= turn.now {
                self.try_to_reserve(wait, turn);
            } else {
                self.waiting.push(wait);
            }
        }
    }

    fn try_to_reserve(&mut self, wait: Waiting, turn: &mut Turn<'_>) {
        let About { caller, target } = &wait.about;
        let tid = target.task.id.tid;
        if caller.client.is_gone() || !target.is_alive() {
            let fault = Fault::NoSuchTask(format!("there is no task {tid} any more"));
            return answer(&wait.reply, Err(fault));
        }
        if let Err(fault) = self.in_order(caller, target, turn.now) {
            return answer(&wait.reply, Err(fault));
        }
        match grant(caller, target, wait.reservation, turn) {
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

    pub(super) fn release(
        &mut self,
        caller: &Caller,
        target: &Target,
        turn: &mut Turn<'_>,
    ) -> Result<(), Fault> {
        self.in_order(caller, target, turn.now)?;
        let task = target.task.id;
        let registry = turn.registry.borrow();
        let held = registry.explicit.get(&task).map(|grant| &grant.holder);
        let own = Holder::Client(Arc::clone(&caller.client.name));
        if held.is_none_or(|holder| *holder != own && !caller.account.is_root()) {
            return Err(Fault::NotHeld(format!(
                "no reservation for task {} was asked for from this connection",
                task.tid
            )));
        }
        drop(registry);
        take_back(task, turn);
        Ok(())
    }

    pub(super) fn forget_old_calls(&mut self, now: Instant) {
        self.order.forget_old(now);
    }
}

fn grant(
    caller: &Caller,
    target: &Target,
    reservation: Reservation,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let task = target.task;
    partners::untrack(task.id, turn);
    let is_freed = |account: &Arc<Account>| account.is_exempt;
    if !caller.account.is_exempt
        && turn
            .registry
            .borrow()
            .ledger
            .account(task.id)
            .is_some_and(is_freed)
    {
        return Err(Refusal::OverQuota {
            left: onbeat_model::Bandwidth::ZERO,
            advice: "a rule of onbeat.toml, or root, decides about it: ask an administrator"
                .to_owned(),
        });
    }
    let mut registry = turn.registry.borrow_mut();
    if !registry.explicit.contains_key(&task.id) {
        let entered = registry.ledger.enter(task.id, &caller.account);
        entered.map_err(|error| error.to_refusal(reservation))?;
    }
    // Asked before others make room.
    if let Err(error) = registry.ledger.admits(task.id, reservation) {
        if !registry.explicit.contains_key(&task.id) {
            registry.ledger.leave(task.id);
        }
        return Err(error.to_refusal(reservation));
    }
    let holder = Holder::Client(Arc::clone(&caller.client.name));
    let uid = target.uid;
    let grant = ExplicitReservation { holder, task, uid };
    let former = registry.explicit.insert(task.id, grant);
    drop(registry);
    let mut granted = turn.controller.grant(task, reservation, turn.now);
    if granted.is_ok() && !target.is_alive() {
        turn.controller.take_back(task.id, turn.now);
        granted = Err(Refusal::Gone);
    }
    let mut registry = turn.registry.borrow_mut();
    match former {
        _ if granted.is_ok() => {}
        Some(former) => {
            registry.explicit.insert(task.id, former);
        }
        None => {
            registry.explicit.remove(&task.id);
            registry.ledger.leave(task.id);
        }
    }
    granted
}

/// Threads that run another user's program by now (a set-user-ID one was executed): earlier
/// requests have no effect. Those that are tracked are noticed at once; these are looked at.
pub(super) fn take_back_from_other_owners(turn: &mut Turn<'_>) {
    let registry = turn.registry.borrow();
    let is_strangers = |grant: &&ExplicitReservation| {
        let now = Status::read(grant.task.id.tid);
        now.is_some_and(|now| now.uid != Some(grant.uid))
    };
    let strangers = registry.explicit.values().filter(is_strangers);
    let strangers: Vec<TaskId> = strangers.map(|grant| grant.task.id).collect();
    drop(registry);
    for task in strangers {
        take_back(task, turn);
    }
}

pub(super) fn take_back(task: TaskId, turn: &mut Turn<'_>) {
    if turn.registry.borrow_mut().explicit.remove(&task).is_none() {
        return;
    }
    turn.controller.take_back(task, turn.now);
    turn.publish();
    turn.registry.borrow_mut().ledger.leave(task);
}
