//! What is answered about the state of things, and what is told of every change: to the log, and to
//! those who look on.

use std::collections::BTreeSet;

use async_channel::Sender;
use onbeat_control::{Controller, Entry, What};
use onbeat_metrics::Metrics;
use onbeat_model::{Actuator, Bandwidth, Instant};

use super::lines::Lines;
use crate::book::{Reniced, Shared};
use crate::request::{Caller, Figures, Item};
use crate::target::Status;

/// So many changes of one user's tasks are written to the log in a minute: 64 tasks may each change
/// four times, and forty users do not come near what journald takes of a service (10,000 lines in
/// 30 s).
const LINES: u32 = 256;

/// A change, for those who look on.
#[derive(Clone, Debug)]
pub struct Change {
    /// What was done, and why.
    pub entry: Entry,
    /// To whom the thread is charged.
    pub uid: u32,
}

/// Tells of changes, and counts them.
#[derive(Debug)]
pub struct Teller {
    changes: Sender<Change>,
    started: Instant,
    made: u64,
    refused: u64,
    metrics: Option<Metrics>,
    lines: Lines,
    /// Others on this machine who change the scheduling of tasks.
    pub(super) others: BTreeSet<&'static str>,
}

impl Teller {
    /// One that tells `changes`, as far as there is room: who does not listen misses some.
    #[must_use]
    pub const fn new(changes: Sender<Change>, started: Instant, metrics: Option<Metrics>) -> Self {
        Self {
            changes,
            started,
            made: 0,
            refused: 0,
            metrics,
            lines: Lines::new(LINES),
            others: BTreeSet::new(),
        }
    }

    /// Everything that the loop did since this was last called.
    pub(super) fn tell<A: Actuator>(&mut self, controller: &mut Controller<A>, book: &Shared) {
        for entry in controller.journal() {
            match entry.what {
                What::Reserved | What::Changed | What::Released => self.made += 1,
                What::Refused | What::TakenOver => self.refused += 1,
            }
            if let Some(metrics) = &mut self.metrics {
                metrics.decided(&entry);
            }
            let uid = book.borrow().ledger.person(entry.task.id).map(|p| p.uid);
            if self.may_write(uid.unwrap_or(0), entry.at) {
                crate::logs::entry(&entry, &self.others);
            }
            let _ = self.changes.try_send(Change {
                uid: uid.unwrap_or(0),
                entry,
            });
        }
    }

    /// Whether a line is written about a task that is charged to the user `uid`; if not, it is
    /// counted. Root is believed to mean no harm.
    pub(super) fn may_write(&mut self, uid: u32, now: Instant) -> bool {
        uid == 0 || self.lines.admits(uid, now)
    }

    /// The changes that were not written for some time are told in one line for each user.
    pub(super) fn tell_unwritten(&mut self, now: Instant) {
        for (uid, count) in self.lines.left_out(now) {
            tracing::info!(
                uid,
                "{count} more changes of tasks that are charged to user {uid} are not written here: more than {LINES} in a \
                 minute"
            );
        }
    }

    /// What somebody else did to tasks with reservations, and is left as it is.
    pub(super) fn tell_reniced(&mut self, book: &Shared, at: Instant) {
        let mut book = book.borrow_mut();
        for Reniced { task, before, now } in std::mem::take(&mut book.reniced) {
            let uid = book.ledger.person(task).map_or(0, |person| person.uid);
            if !self.may_write(uid, at) {
                continue;
            }
            let name = Status::read(task.tid).map(|status| status.name);
            let name = name.unwrap_or_default();
            tracing::info!(
                tid = task.tid,
                comm = %name,
                "{name} ({}): somebody else changed its nice level from {before} to {now}; that stays, and is in force \
                 whenever it has no reservation",
                task.tid
            );
        }
    }

    /// Tells whoever collects metrics how things stand.
    pub(super) fn attend<A: Actuator>(&mut self, controller: &mut Controller<A>, now: Instant) {
        let outcome = self.metrics.as_mut().map(|m| m.attend(controller, now));
        if let Some(Err(error)) = outcome {
            tracing::error!("{error}");
        }
    }

    pub(super) fn count<A: Actuator>(
        &self,
        caller: &Caller,
        book: &Shared,
        controller: &Controller<A>,
        now: Instant,
    ) -> Figures {
        let book = book.borrow();
        let held = controller.view().filter_map(|view| view.held);
        let (reserved, bandwidth) = held.fold((0, Bandwidth::ZERO), |(count, sum), held| {
            (count + 1, sum + held.bandwidth())
        });
        Figures {
            threads: book.ledger.len() as u64,
            reserved,
            bandwidth,
            total: controller.total(),
            holders: book.holders() as u64,
            turned_away: book.turned_away,
            changes: self.made,
            refusals: self.refused,
            others: self.others.iter().copied().collect(),
            uptime: now.since(self.started),
            quota: book.ledger.quotas().of_user(caller.person.uid),
            charged: book.ledger.charged_to(caller.person.uid),
        }
    }
}

/// The threads that the caller may see: his own, root all.
pub(crate) fn list<A: Actuator>(
    caller: &Caller,
    book: &Shared,
    controller: &Controller<A>,
) -> Vec<Item> {
    let book = book.borrow();
    let items = controller.view().filter_map(|view| {
        let uid = book.ledger.person(view.task.id)?.uid;
        (caller.person.is_root() || caller.person.uid == uid).then_some(Item { view, uid })
    });
    items.collect()
}
