//! Processes and threads that are tracked.

use std::sync::Arc;

use onbeat_act::task;
use onbeat_model::{Follow, Instant, Sensor, TaskId};

use super::partners;
use super::turn::Turn;
use crate::account::Account;
use crate::fault::Fault;
use crate::registry::{Holder, Registry, TrackedProcess};
use crate::request::Caller;
use crate::target::Target;

/// The time between two searches of a process for threads whose start was lost. 16 a second; each
/// search goes through all tasks of the machine, up to 0.3 ms where there are 2,000
/// (`TASKS_PER_CALL`), which is half a percent of a CPU.
const SEARCH: onbeat_model::Span = onbeat_model::Span::from_us(62_500);

fn is_whole(target: &Target, follow: Follow) -> bool {
    target.is_process() && follow != Follow::Alone
}

pub(super) fn track(
    caller: &Caller,
    target: &Target,
    children: bool,
    turn: &mut Turn<'_>,
) -> Result<(), Fault> {
    if caller.client.is_gone() {
        return Err(Fault::NotHeld("the caller has left the bus".to_owned()));
    }
    let holder = Holder::Client(Arc::clone(&caller.client.name));
    track_for(
        holder,
        &caller.account,
        target,
        Follow::with(children),
        turn,
    )
}

pub(super) fn track_for(
    holder: Holder,
    account: &Arc<Account>,
    target: &Target,
    follow: Follow,
    turn: &mut Turn<'_>,
) -> Result<(), Fault> {
    let (tid, id) = (target.task.id.tid, target.task.id);
    untrack_partners_of(target, turn);
    if let Some(process) = turn.registry.borrow_mut().processes.get_mut(&id) {
        let heard = process.wants_children() || follow != Follow::Children;
        // A rule may have wanted its first thread alone.
        let was_whole = process.whole;
        process.whole |= is_whole(target, follow);
        process.want(holder, account, follow);
        if heard && process.whole == was_whole {
            return Ok(());
        }
    } else {
        enter(
            holder,
            account,
            target,
            follow,
            &mut turn.registry.borrow_mut(),
        )?;
    }
    let tracked = turn.sensor.track(tid, follow);
    if tracked.is_ok() && target.is_alive() {
        return Ok(());
    }
    untrack_processes(&[id], turn);
    Err(match tracked {
        Ok(()) => Fault::NoSuchTask(format!("there is no task {tid} any more")),
        Err(error) => Fault::Failed(error.to_string()),
    })
}

/// A thread that was tracked because it may work for another one is from now on tracked for its own
/// sake.
fn untrack_partners_of(target: &Target, turn: &mut Turn<'_>) {
    let is_meant = |task: &TaskId, pid: u32| {
        (target.is_process() && pid == target.task.pid) || *task == target.task.id
    };
    let registry = turn.registry.borrow();
    let partners = registry.partners.all.iter();
    let partners = partners.filter(|(task, partner)| is_meant(task, partner.pid));
    let partners: Vec<TaskId> = partners.map(|(task, _)| *task).collect();
    drop(registry);
    for partner in partners {
        partners::untrack(partner, turn);
    }
}

/// Registers the target with its first thread.
/// Fails if not even that thread is within the quota.
fn enter(
    holder: Holder,
    account: &Arc<Account>,
    target: &Target,
    follow: Follow,
    registry: &mut Registry,
) -> Result<(), Fault> {
    let (task, owner) = (target.task.id, Some(target.uid));
    let mut process = TrackedProcess::new(target.task.pid, task, Arc::clone(account), owner);
    process.whole = is_whole(target, follow);
    process.want(holder, account, follow);
    registry.processes.insert(target.task.id, process);
    registry.admit(&target.task).map_err(|error| {
        registry.processes.remove(&target.task.id);
        Fault::OverQuota(error.to_string())
    })
}

pub(super) fn untrack(caller: &Caller, target: &Target, turn: &mut Turn<'_>) -> Result<(), Fault> {
    let (tid, id) = (target.task.id.tid, target.task.id);
    let holder = Holder::Client(Arc::clone(&caller.client.name));
    let unwanted = turn.registry.borrow_mut().drop_lease(&holder, id);
    let unwanted = unwanted.ok_or_else(|| {
        Fault::NotHeld(format!("task {tid} was not tracked from this connection"))
    })?;
    untrack_processes(&unwanted, turn);
    assign(id, None, turn);
    settle_payers(turn);
    Ok(())
}

/// The process is of this application from now on, or again of its own.
pub(super) fn assign(id: TaskId, application: Option<u32>, turn: &mut Turn<'_>) {
    let mut registry = turn.registry.borrow_mut();
    let Some(process) = registry.processes.get_mut(&id) else {
        return;
    };
    process.shares = application;
    let threads = process.threads.clone();
    drop(registry);
    for thread in threads {
        turn.controller.changed_party(thread, turn.now);
    }
}

/// Has what its payer wants no longer paid by another holder, and untracks the threads that this
/// one's quota has no room for.
pub(super) fn settle_payers(turn: &mut Turn<'_>) {
    let beyond = turn.registry.borrow_mut().settle_payers();
    untrack_threads(&beyond, turn);
}

/// No holder wants these any more: their threads get back what they had. All at once, because the
/// sensor may go through all tasks of the machine for it.
pub(super) fn untrack_processes(processes: &[TaskId], turn: &mut Turn<'_>) {
    let mut registry = turn.registry.borrow_mut();
    let threads = processes.iter().flat_map(|id| registry.take_out(*id));
    let threads: Vec<TaskId> = threads.collect();
    drop(registry);
    untrack_threads(&threads, turn);
}

fn untrack_threads(threads: &[TaskId], turn: &mut Turn<'_>) {
    if threads.is_empty() {
        return;
    }
    // If the kernel refuses, events of it still come, and are ignored.
    let _ = turn.sensor.untrack(threads);
    for &thread in threads {
        turn.controller.forget(thread, turn.now);
        turn.publish();
        turn.registry.borrow_mut().ledger.leave(thread);
    }
}

/// The processes that are still to be searched for threads whose start was lost.
#[derive(Debug, Default)]
pub(super) struct MissedStarts {
    to_search: Vec<TaskId>,
    next: Instant,
}

impl MissedStarts {
    /// Tracks the threads that started while events were lost, or while there was no room for one
    /// more. One process at a time.
    pub(super) fn track_some(&mut self, turn: &mut Turn<'_>) {
        if turn.now < self.next {
            return;
        }
        self.next = turn.now + SEARCH;
        if self.to_search.is_empty() {
            if !turn.sensor.take_missed_starts() {
                return;
            }
            let registry = turn.registry.borrow();
            let whole = registry
                .processes
                .iter()
                .filter(|(_, process)| process.whole);
            self.to_search.extend(whole.map(|(id, _)| *id));
        }
        while let Some(id) = self.to_search.pop() {
            let registry = turn.registry.borrow();
            let follow = registry
                .processes
                .get(&id)
                .map(|process| Follow::with(process.wants_children()));
            drop(registry);
            let Some(follow) = follow else {
                continue;
            };
            // One that is gone is heard of by other ways. For one that is not there is no room yet:
            // the others go first.
            if turn.sensor.track(id.tid, follow).is_err() && task::is_alive(id) {
                self.to_search.insert(0, id);
            }
            return;
        }
    }
}
