//! Accounts that tasks share because a program asked for that (AQuoSA's servers). To the loop such
//! tasks are one application, whose account is fixed.

use std::sync::Arc;

use onbeat_model::{Follow, Reservation, Span, TaskId};

use super::tracking;
use super::turn::Turn;
use crate::fault::Fault;
use crate::quota::QuotaError;
use crate::registry::Holder;
use crate::request::Caller;
use crate::target::Target;

/// No process has such a number.
const FIRST: u32 = 1 << 22;

/// The holder's account of that number.
type Key = (Holder, u32);

fn key(caller: &Caller, number: u32) -> Key {
    (Holder::Client(Arc::clone(&caller.client.name)), number)
}

fn find(key: &Key, turn: &Turn<'_>) -> Result<TaskId, Fault> {
    let found = turn.registry.borrow().shares.get(key).copied();
    let none = || Fault::NotHeld(format!("this connection has no account {}", key.1));
    found.ok_or_else(none)
}

pub(super) fn share(
    caller: &Caller,
    number: u32,
    wanted: Option<Reservation>,
    turn: &mut Turn<'_>,
) -> Result<(), Fault> {
    let key = key(caller, number);
    let found = find(&key, turn);
    let Some(wanted) = wanted else {
        end(&key, found?, turn);
        return Ok(());
    };
    if caller.client.is_gone() {
        return Err(Fault::NotHeld("the caller has left the bus".to_owned()));
    }
    let mut registry = turn.registry.borrow_mut();
    let last = registry.shares.values().map(|account| account.tid).max();
    let is_new = found.is_err();
    let account = found.unwrap_or(TaskId::recorded(last.map_or(FIRST, |last| last + 1)));
    let over_quota = |error: QuotaError| Fault::OverQuota(error.to_refusal(wanted).to_string());
    if is_new {
        registry
            .ledger
            .enter(account, &caller.account)
            .map_err(over_quota)?;
        registry.shares.insert(key.clone(), account);
    }
    let admitted = registry.ledger.admits(account, wanted).map_err(over_quota);
    drop(registry);
    let fixed = admitted.and_then(|()| {
        let times = Some((wanted.runtime(), wanted.period()));
        let full = || Fault::NoRoom("all accounts together take the CPUs: ask for less".to_owned());
        let has_room = turn.controller.fix(account.tid, times, turn.now);
        has_room.then_some(()).ok_or_else(full)
    });
    if fixed.is_ok() {
        let ledger = &mut turn.registry.borrow_mut().ledger;
        ledger.charge(account, Some(wanted));
    } else if is_new {
        end(&key, account, turn);
    }
    fixed
}

pub(super) fn join(
    caller: &Caller,
    target: &Target,
    number: u32,
    whole: bool,
    turn: &mut Turn<'_>,
) -> Result<(), Fault> {
    let key = key(caller, number);
    let account = find(&key, turn)?;
    let follow = match whole {
        true => Follow::Threads,
        false => Follow::Alone,
    };
    tracking::track_for(key.0, &caller.account, target, follow, turn)?;
    tracking::assign(target.task.id, Some(account.tid), turn);
    Ok(())
}

pub(super) fn balance(
    caller: &Caller,
    number: u32,
    turn: &mut Turn<'_>,
) -> Result<(Span, Span), Fault> {
    let account = find(&key(caller, number), turn)?;
    let balance = turn.controller.balance(account.tid, turn.now);
    Ok(balance.unwrap_or_default())
}

fn end(key: &Key, account: TaskId, turn: &mut Turn<'_>) {
    let mut registry = turn.registry.borrow_mut();
    let members = registry.processes.iter();
    let members = members.filter(|(_, process)| process.shares == Some(account.tid));
    let members: Vec<TaskId> = members.map(|(id, _)| *id).collect();
    let unwanted = members
        .iter()
        .filter_map(|id| registry.drop_lease(&key.0, *id));
    let unwanted: Vec<TaskId> = unwanted.flatten().collect();
    registry.shares.remove(key);
    registry.ledger.charge(account, None);
    registry.ledger.leave(account);
    drop(registry);
    tracking::untrack_processes(&unwanted, turn);
    for member in members {
        tracking::assign(member, None, turn);
    }
    turn.controller.fix(account.tid, None, turn.now);
}

pub(super) fn end_all_of(holder: &Holder, turn: &mut Turn<'_>) {
    let registry = turn.registry.borrow();
    let theirs = registry.shares.iter().filter(|((of, _), _)| of == holder);
    let theirs: Vec<(Key, TaskId)> = theirs
        .map(|(key, account)| (key.clone(), *account))
        .collect();
    drop(registry);
    for (key, account) in theirs {
        end(&key, account, turn);
    }
}
