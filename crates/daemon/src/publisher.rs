//! Publishes every change: to the journal, to subscribers on the bus, and to the metrics.

use std::collections::{BTreeSet, VecDeque};

use async_channel::Sender;
use onbeat_control::{Controller, Decision, Entry, ThreadReport, What, Why};
use onbeat_metrics::Metrics;
use onbeat_model::{Actuator, Bandwidth, Instant, Refusal, Span, Task, TaskId};

use crate::account::Account;
use crate::line_limit::LineLimit;
use crate::quota::Quota;
use crate::quota_actuator::{QuotaActuator, Reniced};
use crate::registry::SharedRegistry;
use crate::target::Status;

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

/// The changes of one user's tasks that are written in that time. 64 tasks may each change four
/// times, and forty users do not come near what journald takes of a service (10,000 lines in 30 s).
const CHANGES: u32 = 256;
/// A client asks each second, and a few hundred threads change at most twice a second.
const DECISIONS: usize = 1024;
const PROCESSES: usize = 256;

#[derive(Clone, Debug)]
pub struct Change {
    pub entry: Entry,
    /// To whom the thread is charged.
    pub uid: u32,
}

/// Publishes changes, and counts them.
#[derive(Debug)]
pub struct Publisher {
    changes: Sender<Change>,
    started: Instant,
    made: u64,
    refused: u64,
    metrics: Option<Metrics>,
    lines: LineLimit,
    /// The last decisions, for clients that ask.
    decisions: VecDeque<Decision>,
    /// The last processes of which it was written that a quota refuses them a reservation (true),
    /// or is used up.
    told_quota: VecDeque<(u32, bool)>,
    /// Other programs on this machine that change the scheduling of tasks.
    pub(crate) others: BTreeSet<&'static str>,
}

impl Publisher {
    /// A publisher into `changes`, as far as there is room: a slow subscriber misses some.
    #[must_use]
    pub const fn new(changes: Sender<Change>, started: Instant, metrics: Option<Metrics>) -> Self {
        Self {
            changes,
            started,
            made: 0,
            refused: 0,
            metrics,
            lines: LineLimit::new(CHANGES),
            decisions: VecDeque::new(),
            told_quota: VecDeque::new(),
            others: BTreeSet::new(),
        }
    }

    /// Publishes everything that the loop did since this was last called.
    pub(crate) fn publish<A: Actuator>(
        &mut self,
        controller: &mut Controller<A>,
        registry: &SharedRegistry,
    ) {
        for decision in controller.journal() {
            self.remember(&decision);
            let (task, at, is_over) = match &decision {
                Decision::Reservation(entry) => (entry.task, entry.at, entry.why == Why::OverQuota),
                Decision::Boost(entry) => (entry.task, entry.at, entry.why == Why::UserOverQuota),
                Decision::Speed(_) => continue,
            };
            if is_over {
                self.log_used_up(&task, registry, at);
            }
            let Some(entry) = decision.on_reservation() else {
                continue;
            };
            match entry.what {
                What::Reserved | What::Changed | What::Released => self.made += 1,
                What::Refused | What::TakenOver => self.refused += 1,
                What::Doubted => {}
            }
            if let Some(metrics) = &mut self.metrics {
                metrics.decided(&entry);
            }
            let uid = registry
                .borrow()
                .ledger
                .account(entry.task.id)
                .map(|p| p.uid);
            let is_known = matches!(entry.why, Why::Refused(Refusal::OverQuota { .. }))
                && !self.is_first((entry.task.pid, true));
            if !is_known && self.may_write(uid.unwrap_or(0), entry.at) {
                crate::logs::entry(&entry, &self.others);
            }
            let _ = self.changes.try_send(Change {
                uid: uid.unwrap_or(0),
                entry,
            });
        }
    }

    fn remember(&mut self, decision: &Decision) {
        if self.decisions.len() == DECISIONS {
            self.decisions.pop_front();
        }
        self.decisions.push_back(decision.clone());
    }

    /// The decisions after `since` about these threads.
    pub(crate) fn decisions_on(&self, threads: &[ThreadReport], since: Instant) -> Vec<Decision> {
        let known: BTreeSet<TaskId> = threads.iter().map(|thread| thread.task.id).collect();
        let is_meant = |decision: &&Decision| match decision {
            Decision::Reservation(entry) => entry.at > since && known.contains(&entry.task.id),
            Decision::Boost(entry) => entry.at > since && known.contains(&entry.task.id),
            Decision::Speed(_) => false,
        };
        self.decisions.iter().filter(is_meant).cloned().collect()
    }

    fn is_first(&mut self, of: (u32, bool)) -> bool {
        let is_first = !self.told_quota.contains(&of);
        if is_first {
            if self.told_quota.len() == PROCESSES {
                self.told_quota.pop_front();
            }
            self.told_quota.push_back(of);
        }
        is_first
    }

    /// Writes, once for each process, that its user's quota was used up, and which line gives more.
    fn log_used_up(&mut self, task: &Task, registry: &SharedRegistry, at: Instant) {
        let registry = registry.borrow();
        let Some((whose, quota)) = registry.ledger.used_up(task.id) else {
            return;
        };
        let uid = registry.ledger.account(task.id).map_or(0, |of| of.uid);
        if !self.is_first((task.pid, false)) || !self.may_write(uid, at) {
            return;
        }
        tracing::warn!(
            tid = task.id.tid, pid = task.pid, comm = %task.comm, uid,
            "{} ({}): {}", task.comm, task.pid, whose.used_up(quota)
        );
    }

    /// Whether a line is written about a task that is charged to the user `uid`; if not, it is
    /// counted. Root is believed to mean no harm.
    pub(crate) fn may_write(&mut self, uid: u32, now: Instant) -> bool {
        uid == 0 || self.lines.admits(uid, now)
    }

    /// Writes one line for each user about the changes that were left out.
    pub(crate) fn log_left_out(&mut self, now: Instant) {
        for (uid, count) in self.lines.left_out(now) {
            tracing::info!(
                uid,
                "{count} more changes of tasks that are charged to user {uid} are not written here: more than {CHANGES} in a \
                 minute"
            );
        }
    }

    /// Writes one line for each user whose tasks have left reservations by other hands than the
    /// service's: an administrator is to see why others find no room.
    pub(crate) fn log_leaks(&mut self, registry: &SharedRegistry, now: Instant) {
        let mut registry = registry.borrow_mut();
        for (uid, leaked) in registry.ledger.take_new_leaks() {
            if self.may_write(uid, now) {
                tracing::warn!(
                    uid,
                    "threads of user {uid} gave up reservations by themselves: the kernel may still count {leaked} for them, \
                     which nobody can reserve until it recounts or the machine restarts"
                );
            }
        }
        if let Some(metrics) = &mut self.metrics {
            metrics.set_leaked(registry.ledger.leaked());
        }
    }

    /// Logs the nice levels that another program gave tasks with reservations, which are left as
    /// they are.
    pub(crate) fn log_reniced<A: Actuator>(
        &mut self,
        actuator: &mut QuotaActuator<A>,
        registry: &SharedRegistry,
        at: Instant,
    ) {
        for Reniced { task, before, now } in actuator.take_reniced() {
            let account = registry.borrow().ledger.account(task).cloned();
            let uid = account.map_or(0, |account| account.uid);
            if !self.may_write(uid, at) {
                continue;
            }
            let name = Status::read(task.tid).map(|status| status.name);
            let name = name.unwrap_or_default();
            tracing::info!(
                tid = task.tid,
                comm = %name,
                "{name} ({}): another program changed its nice value from {before} to {now}: onbeat keeps that; it applies while the \
                 thread has no reservation",
                task.tid
            );
        }
    }

    pub(crate) fn measure<A: Actuator>(&mut self, controller: &mut Controller<A>, now: Instant) {
        let outcome = self.metrics.as_mut().map(|m| m.attend(controller, now));
        if let Some(Err(error)) = outcome {
            tracing::error!("{error}");
        }
    }

    pub(crate) fn count<A: Actuator>(
        &self,
        account: &Account,
        registry: &SharedRegistry,
        controller: &Controller<A>,
        now: Instant,
    ) -> Figures {
        let registry = registry.borrow();
        let held = controller.held();
        let (reserved, bandwidth) = held.fold((0, Bandwidth::ZERO), |(count, sum), (_, held)| {
            (count + 1, sum + held.bandwidth())
        });
        Figures {
            threads: registry.ledger.len() as u64,
            reserved,
            bandwidth,
            total: controller.total(),
            holders: registry.holders() as u64,
            turned_away: registry.turned_away,
            changes: self.made,
            refusals: self.refused,
            others: self.others.iter().copied().collect(),
            uptime: now.since(self.started),
            quota: registry.ledger.quotas().of_user(account.uid),
            charged: registry.ledger.charged_to(account.uid),
        }
    }
}
