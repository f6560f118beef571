//! Publishes every change: to the journal, to subscribers on the bus, and to the metrics.

use std::collections::{BTreeSet, VecDeque};

use async_channel::Sender;
use onbeat_control::{Controller, Decision, Entry, ThreadReport, What, Why};
use onbeat_metrics::Metrics;
use onbeat_model::{Bandwidth, Instant, Refusal, Span, Task, TaskId};

use crate::account::Account;
use crate::line_limit::LineLimit;
use crate::quota::Quota;
use crate::quota_actuator::{QuotaActuator, Reniced};
use crate::registry::SharedRegistry;
use crate::target::Status;

#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Threads that are tracked or reserved for.
    pub threads: u64,
    pub reserved: u64,
    pub bandwidth: Bandwidth,
    pub total: Bandwidth,
    /// The number of holders: connections and rules.
    pub holders: u64,
    /// Threads that were one too many for their owner.
    pub turned_away: u64,
    pub changes: u64,
    pub refusals: u64,
    pub uptime: Span,
    pub quota: Option<Quota>,
    pub charged: (Bandwidth, u32),
}

/// The lines about one user's tasks that are written in a minute. 64 tasks may each change four
/// times, and forty users do not come near what journald takes of a service (10,000 lines in 30 s).
const LINES: u32 = 256;
/// A client asks each second, and a few hundred threads change at most twice a second.
const DECISIONS: usize = 1024;
const PROCESSES: usize = 256;

#[derive(Clone, Debug)]
pub struct Change {
    pub entry: Entry,
    /// To whom the thread is charged.
    pub uid: u32,
}

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
}

impl Publisher {
    /// A publisher into `changes`, as far as there is room: a slow subscriber misses some.
    pub const fn new(changes: Sender<Change>, started: Instant, metrics: Option<Metrics>) -> Self {
        Self {
            changes,
            started,
            made: 0,
            refused: 0,
            metrics,
            lines: LineLimit::new(LINES),
            decisions: VecDeque::new(),
            told_quota: VecDeque::new(),
        }
    }

    pub(crate) fn publish(
        &mut self,
        controller: &mut Controller<QuotaActuator>,
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
                crate::logs::entry(&entry);
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

    pub(crate) fn log_left_out(&mut self, now: Instant) {
        for (uid, count) in self.lines.left_out(now) {
            tracing::info!(
                uid,
                "{count} more lines about tasks of user {uid} are not written here: more than {LINES} in a minute"
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
    pub(crate) fn log_reniced(
        &mut self,
        actuator: &mut QuotaActuator,
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

    pub(crate) fn measure(&mut self, controller: &mut Controller<QuotaActuator>, now: Instant) {
        let outcome = self.metrics.as_mut().map(|m| m.attend(controller, now));
        if let Some(Err(error)) = outcome {
            tracing::error!("{error}");
        }
    }

    pub(crate) fn count(
        &self,
        account: &Account,
        registry: &SharedRegistry,
        controller: &Controller<QuotaActuator>,
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
            uptime: now.since(self.started),
            quota: registry.ledger.quotas().of_user(account.uid),
            charged: registry.ledger.charged_to(account.uid),
        }
    }
}
