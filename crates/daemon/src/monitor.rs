//! The call of a client that monitors the service, and the answer: the state of the threads that it
//! may see, and what happened since its last call.

use std::collections::BTreeSet;

use onbeat_control::{Application, Controller, Decision, DoneJob, Progress, ServedBy, State, View};
use onbeat_model::{Actuator, Bandwidth, Instant, Span, TaskId};

use crate::account::Account;
use crate::ledger::Ledger;
use crate::quota::Quota;
use crate::registry::SharedRegistry;

/// The most threads whose jobs are told at a time. More than a screen has lines.
pub const MOST_THREADS: usize = 256;

/// The query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MonitorQuery {
    /// Jobs that ended after this.
    pub since: Instant,
    /// The threads whose jobs are wanted.
    pub jobs_of: BTreeSet<u32>,
    /// The wakeups of this thread.
    pub wakeups_of: Option<u32>,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct MonitorReply {
    /// When, on the clock of all times here (CLOCK_MONOTONIC).
    pub now: Instant,
    /// The bandwidth of all reservations of all users.
    pub reserved: Bandwidth,
    /// The most that this may be.
    pub total: Bandwidth,
    /// The threads that the caller may see.
    pub items: Vec<Item>,
    /// Jobs by thread, as far as they are wanted, and the thread may be seen.
    pub jobs: Vec<(u32, Vec<DoneJob>)>,
    /// The wakeups of the last seconds.
    pub wakeups: Vec<Instant>,
}

impl MonitorReply {
    /// The answer for the user of `account` at `now`.
    pub(crate) fn of<A: Actuator>(
        account: &Account,
        query: &MonitorQuery,
        registry: &SharedRegistry,
        controller: &Controller<A>,
        now: Instant,
    ) -> Self {
        let items = list(account, registry, controller);
        let held = controller.held().map(|(_, held)| held.bandwidth());
        let ids = items.iter().map(|item| item.view.task.id);
        let ids: Vec<TaskId> = ids.collect();
        let wanted = ids.iter().filter(|id| query.jobs_of.contains(&id.tid));
        let jobs = wanted.map(|&id| (id.tid, controller.recent_jobs(id, query.since).collect()));
        let woken = ids.iter().filter(|id| query.wakeups_of == Some(id.tid));
        Self {
            now,
            reserved: held.sum(),
            total: controller.total(),
            jobs: jobs.collect(),
            wakeups: woken.flat_map(|&id| controller.wakeups(id)).collect(),
            items,
        }
    }
}

/// One thread.
#[derive(Clone, Debug)]
pub struct Item {
    /// How things stand with it.
    pub view: View,
    /// To whom it is charged.
    pub uid: u32,
}

/// How much there is of everything.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Threads that are tracked or reserved for.
    pub threads: u64,
    /// Threads that hold a reservation.
    pub reserved: u64,
    /// The bandwidth that they hold together.
    pub bandwidth: Bandwidth,
    /// The most that all may hold together.
    pub total: Bandwidth,
    /// The number of holders: connections and rules.
    pub holders: u64,
    /// Threads that were one too many for their owner.
    pub turned_away: u64,
    /// Changes made since the start.
    pub changes: u64,
    /// Refusals since the start.
    pub refusals: u64,
    /// The other programs on this machine that change the scheduling of tasks.
    pub others: Vec<&'static str>,
    /// For how long the service has been running.
    pub uptime: Span,
    /// The caller's own quota, if he is under one.
    pub quota: Option<Quota>,
    /// The caller's charges.
    pub charged: (Bandwidth, u32),
}

/// The applications that the user of `account` may see: those all of whose threads it sees.
pub(crate) fn applications<A: Actuator>(
    account: &Account,
    registry: &SharedRegistry,
    controller: &Controller<A>,
    now: Instant,
) -> Vec<Application> {
    let mut applications = controller.applications(now);
    applications.retain(|application| application.living > 0);
    if !account.is_root() {
        let registry = registry.borrow();
        let hidden: BTreeSet<u32> = controller
            .view()
            .filter(|view| payer_seen_by(account, &registry.ledger, view.task.id).is_none())
            .map(|view| view.served.application)
            .collect();
        applications.retain(|application| !hidden.contains(&application.pid));
    }
    applications
}

/// The threads that the user of `account` may see: its own, root all.
pub(crate) fn list<A: Actuator>(
    account: &Account,
    registry: &SharedRegistry,
    controller: &Controller<A>,
) -> Vec<Item> {
    let registry = registry.borrow();
    let items = controller.view().filter_map(|view| {
        let uid = payer_seen_by(account, &registry.ledger, view.task.id)?;
        let mut view = view;
        complain(&mut view.served, view.state, view.task.id, &registry.ledger);
        Some(Item { view, uid })
    });
    items.collect()
}

/// What `account` may see of the program to which `process` belongs, with what happened after
/// `since`.
pub(crate) fn progress<A: Actuator>(
    account: &Account,
    (process, since): (u32, Instant),
    registry: &SharedRegistry,
    controller: &Controller<A>,
    now: Instant,
) -> Progress<Decision> {
    let mut items = list(account, registry, controller);
    items
        .retain(|Item { view, .. }| view.task.pid == process || view.served.application == process);
    let mut applications = applications(account, registry, controller, now);
    let of = |pid| move |item: &Item| item.view.served.application == pid;
    applications.retain(|application| items.iter().any(of(application.pid)));
    let mut progress = Progress {
        applications,
        threads: Vec::new(),
        refusals: Vec::new(),
        jobs: Vec::new(),
        decisions: Vec::new(),
    };
    for Item { view, .. } in items {
        let (task, refusal) = (view.task, view.served.refusal);
        let jobs = controller.recent_jobs(task.id, since).collect();
        progress.jobs.push((task.id, jobs));
        if let Some(report) = controller.report_on(task.id, now) {
            progress.threads.push(report);
        }
        let is_taken = |_: &_| view.state == State::TakenOver;
        let taken = view.last.filter(is_taken).map(|(_, why)| why.to_string());
        progress
            .refusals
            .extend(refusal.or(taken).map(|why| (task, why)));
    }
    progress
}

/// Says of a thread that wants something why it has none now: its quota is used up.
fn complain(served: &mut ServedBy, state: State, task: TaskId, ledger: &Ledger) {
    if !matches!(state, State::NoNeed | State::TakenOver)
        && let Some((whose, quota)) = ledger.used_up(task)
    {
        served.refusal.get_or_insert_with(|| whose.used_up(quota));
    }
}

/// The user to whom `task` is charged, if the user of `account` may see the task.
fn payer_seen_by(account: &Account, ledger: &Ledger, task: TaskId) -> Option<u32> {
    let uid = ledger.account(task)?.uid;
    (account.is_root() || account.uid == uid).then_some(uid)
}
