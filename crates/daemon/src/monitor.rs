//! What a client may see of the loop: the state of its threads, and what happened since it asked.

use std::collections::BTreeSet;

use onbeat_control::{Application, Decision, Progress, State, ThreadReport};
use onbeat_model::{Instant, TaskId};

use crate::account::Account;
use crate::ledger::Ledger;
use crate::service::turn::Turn;

/// The most threads whose jobs are told at a time. More than a screen has lines.
const MOST_THREADS: usize = 256;

/// The applications that the user of `account` may see: those all of whose threads it sees.
pub(crate) fn applications(account: &Account, turn: &Turn<'_>) -> Vec<Application> {
    let mut applications = turn.controller.applications(turn.now);
    applications.retain(|application| application.living > 0);
    if !account.is_root() {
        let registry = turn.registry.borrow();
        let tasks = turn.controller.tasks();
        let hidden: BTreeSet<u32> = tasks
            .filter(|(task, _)| payer_seen_by(account, &registry.ledger, task.id).is_none())
            .map(|(_, application)| application)
            .collect();
        applications.retain(|application| !hidden.contains(&application.pid));
    }
    applications
}

/// The threads that the user of `account` may see: its own, root all. Of a `process`, those of it
/// and of the application that it began.
pub(crate) fn threads(
    account: &Account,
    process: Option<u32>,
    turn: &Turn<'_>,
) -> Vec<ThreadReport> {
    let registry = turn.registry.borrow();
    let threads = turn.controller.tasks().filter_map(|(task, application)| {
        process
            .is_none_or(|process| process == task.pid || process == application)
            .then_some(())?;
        let user = payer_seen_by(account, &registry.ledger, task.id)?;
        let mut thread = turn.controller.thread(task.id, turn.now)?;
        thread.present.user = Some(user);
        complain(&mut thread, &registry.ledger);
        Some(thread)
    });
    threads.collect()
}

/// What `account` may see of the program to which `process` belongs, or of all, with what happened
/// after `since`.
pub(crate) fn progress(
    account: &Account,
    (process, since): (Option<u32>, Instant),
    turn: &Turn<'_>,
) -> Progress<Decision> {
    let threads = threads(account, process, turn);
    let mut applications = applications(account, turn);
    let theirs: BTreeSet<u32> = threads.iter().map(|one| one.served.application).collect();
    applications.retain(|application| theirs.contains(&application.pid));
    let span = (since, turn.now);
    let mut progress = turn.controller.progress(threads, applications, span);
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
