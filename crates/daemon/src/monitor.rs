//! What a client may see of the loop: the state of its threads, and what happened since it asked.

use std::collections::BTreeSet;

use onbeat_control::{Application, Controller, Decision, Progress, State, ThreadReport};
use onbeat_model::{Actuator, Bandwidth, Instant, Span, TaskId};

use crate::account::Account;
use crate::ledger::Ledger;
use crate::quota::Quota;
use crate::registry::SharedRegistry;

/// The most threads whose jobs are told at a time. More than a screen has lines.
const MOST_THREADS: usize = 256;

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
            .tasks()
            .filter(|(task, _)| payer_seen_by(account, &registry.ledger, task.id).is_none())
            .map(|(_, application)| application)
            .collect();
        applications.retain(|application| !hidden.contains(&application.pid));
    }
    applications
}

/// The threads that the user of `account` may see: its own, root all. Of a `process`, those of it
/// and of the application that it began.
pub(crate) fn threads<A: Actuator>(
    account: &Account,
    process: Option<u32>,
    registry: &SharedRegistry,
    controller: &Controller<A>,
    now: Instant,
) -> Vec<ThreadReport> {
    let registry = registry.borrow();
    let threads = controller.tasks().filter_map(|(task, application)| {
        process
            .is_none_or(|process| process == task.pid || process == application)
            .then_some(())?;
        let user = payer_seen_by(account, &registry.ledger, task.id)?;
        let mut thread = controller.thread(task.id, now)?;
        thread.present.user = Some(user);
        complain(&mut thread, &registry.ledger);
        Some(thread)
    });
    threads.collect()
}

/// What `account` may see of the program to which `process` belongs, or of all, with what happened
/// after `since`.
pub(crate) fn progress<A: Actuator>(
    account: &Account,
    (process, since): (Option<u32>, Instant),
    registry: &SharedRegistry,
    controller: &Controller<A>,
    now: Instant,
) -> Progress<Decision> {
    let threads = threads(account, process, registry, controller, now);
    let mut applications = applications(account, registry, controller, now);
    let theirs: BTreeSet<u32> = threads.iter().map(|one| one.served.application).collect();
    applications.retain(|application| theirs.contains(&application.pid));
    let mut progress = controller.progress(threads, applications, (since, now));
    progress.jobs.truncate(MOST_THREADS);
    progress
}

/// Says of a thread that wants something why it has none now: its quota is used up.
fn complain(thread: &mut ThreadReport, ledger: &Ledger) {
    if !matches!(thread.state, State::NoNeed | State::TakenOver)
        && thread.served.refusal.is_none()
        && let Some((whose, quota)) = ledger.used_up(thread.task.id)
    {
        thread.served.refusal = Some(whose.used_up(quota));
        thread.present.refusal_kind = Some("used-up".to_owned());
    }
}

/// The user to whom `task` is charged, if the user of `account` may see the task.
fn payer_seen_by(account: &Account, ledger: &Ledger, task: TaskId) -> Option<u32> {
    let uid = ledger.account(task)?.uid;
    (account.is_root() || account.uid == uid).then_some(uid)
}
