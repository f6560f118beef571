//! Which tasks are tracked or reserved for, for which holders, and at whose charge.
//!
//! The sensor asks it which threads to track, the actuator how much each may have, and requests
//! change it. So it is shared, because neither seam of the loop passes it along. The loop's thread
//! alone uses it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use onbeat_act::Priority;
use onbeat_control::{Party, Treatment};
use onbeat_model::{Instant, Reservation, Task, TaskId};
use onbeat_sense::bpf::Spender;

use crate::account::Account;
use crate::directory;
use crate::ledger::Ledger;
use crate::quota::QuotaError;
use crate::watch::Watch;
pub use partners::{ChargedPartner, Partners};
pub use tracked::{Holder, Lease, TrackedProcess};

mod partners;
mod tracked;

/// The one registry, shared by the sensor, the actuator, the loop's settings and the service.
pub type SharedRegistry = Rc<RefCell<Registry>>;

#[derive(Clone, Debug)]
pub struct ExplicitReservation {
    pub holder: Holder,
    pub task: Task,
    /// Its user when it was asked for.
    pub uid: u32,
}

#[derive(Debug, Default)]
pub struct Registry {
    pub ledger: Ledger,
    /// The tracked processes, by the thread that was asked for.
    pub processes: BTreeMap<TaskId, TrackedProcess>,
    pub explicit: BTreeMap<TaskId, ExplicitReservation>,
    /// The accounts that tasks share, by holder and the holder's number. Each is a task in the
    /// ledger, with a number that no process has: that of the application that its tasks are.
    pub shares: BTreeMap<(Holder, u32), TaskId>,
    pub raised: BTreeMap<TaskId, Priority>,
    /// Threads that were not tracked, because it was one too many for their owner.
    pub turned_away: u64,
    /// Threads without a request that may work for requested ones.
    pub partners: Partners,
    /// Threads that lent what they had from here for too long, or to another user's: they get
    /// nothing any more.
    pub barred: BTreeSet<TaskId>,
    /// The users whose threads were: they get nothing new while they have used too much, because
    /// each new thread could lend a little before it is barred.
    suspects: BTreeSet<u32>,
    /// The barred threads that are still to be told.
    untold: Vec<(TaskId, Option<TaskId>)>,
    /// Who notices that; none in tests without a kernel.
    pub watch: Option<Watch>,
}

impl Registry {
    pub fn new(ledger: Ledger) -> Self {
        Self {
            ledger,
            ..Self::default()
        }
    }

    /// A thread came to be tracked: the account that it is charged to, if a client asked for it and
    /// may have it.
    /// Fails if it is one too many, or if no client asked for it.
    pub fn admit(&mut self, task: &Task) -> Result<(), QuotaError> {
        if self.partners.all.contains_key(&task.id) {
            return Ok(());
        }
        let processes = self.processes.values_mut();
        let of_process = processes.filter(|process| process.pid == task.pid);
        let Some(process) = of_process.min_by_key(|process| !process.whole) else {
            return Err(QuotaError::Unknown);
        };
        if process.threads.contains(&task.id) {
            return Ok(());
        }
        if let Err(error) = self.ledger.enter(task.id, &process.account) {
            self.turned_away += 1;
            return Err(error);
        }
        process.threads.insert(task.id);
        Ok(())
    }

    /// Whether `reservation` is to be a ceiling for `task`, too.
    pub fn is_ceiling(&self, task: TaskId, reservation: Reservation) -> bool {
        // A thread that holds just what was asked for is heard only if it is tracked as well.
        let mut processes = self.processes.values();
        let hears = !self.explicit.contains_key(&task)
            || processes.any(|process| process.threads.contains(&task));
        self.ledger.is_ceiling(task, reservation, hears)
    }

    /// Until when `task` is to have no reservation, because it and its owner have used too much;
    /// what was asked for stays, as a ceiling.
    pub fn goes_without_until(&self, task: TaskId) -> Option<Instant> {
        let payer = self.ledger.account(task)?.uid;
        if self.suspects.contains(&payer) && !self.ledger.holds(task) {
            return self.ledger.unboosted_until(task);
        }
        let is_asked = self.explicit.contains_key(&task);
        self.ledger.goes_without_until(task).filter(|_| !is_asked)
    }

    pub fn treatment(&self, task: &Task) -> Treatment {
        let mut processes = self.processes.values();
        let process = processes.find(|process| process.pid == task.pid);
        process.map(|process| process.treatment).unwrap_or_default()
    }

    /// Whether the thread gets a reservation although it gave itself a real-time priority.
    pub fn adopts(&self, task: TaskId) -> bool {
        let mut processes = self.processes.values();
        processes.any(|process| process.adopts && process.threads.contains(&task))
    }

    /// The thread has something from here, or no longer, that others can inherit.
    pub fn settle_lending(&mut self, task: TaskId) {
        let raised = self.raised.get(&task).copied();
        let is_given = matches!(raised, Some(Priority::RealTime(_)))
            || self.ledger.is_boosted(task)
            || self.ledger.holds(task);
        if !is_given {
            // It may have lost what it had for that.
            self.hear_of_overdrawn();
        }
        let Some(watch) = &self.watch else {
            return;
        };
        let payer = if is_given || raised.is_some() {
            self.ledger.payer(task)
        } else {
            0
        };
        watch.meter.charge_to(task, payer);
        let is_in_debt = self.ledger.unboosted_until(task).is_some();
        watch.lends(task, is_given, is_in_debt);
    }

    /// Charges what was used up to `now`, and gives quotas what has come together since.
    pub fn meter(&mut self, now: Instant) {
        if let Some(watch) = &self.watch {
            let spent = |payer| watch.meter.spent(Spender::Account(payer));
            self.ledger.metered(spent, now);
        }
        self.ledger.refill(now);
    }

    /// Bars the threads that lost what they lent since this was last called, and returns them, each
    /// with the other user's that it was lent to.
    pub fn bar(&mut self) -> Vec<(TaskId, Option<TaskId>)> {
        self.hear_of_overdrawn();
        std::mem::take(&mut self.untold)
    }

    fn hear_of_overdrawn(&mut self) {
        let Some(watch) = &self.watch else {
            return;
        };
        let (barred, untold) = (&mut self.barred, &mut self.untold);
        let (suspects, ledger) = (&mut self.suspects, &self.ledger);
        watch.meter.overdrawn(|task, heir| {
            if barred.insert(task) {
                untold.push((task, heir));
                let payer = ledger.account(task).map(|account| account.uid);
                suspects.extend(payer);
            }
        });
        if !untold.is_empty() {
            barred.retain(|task| onbeat_act::task::is_alive(*task));
        }
    }

    pub fn ended(&mut self, task: TaskId) {
        self.ledger.remove(task);
        self.explicit.remove(&task);
        self.raised.remove(&task);
        self.barred.remove(&task);
        if let Some(watch) = &self.watch {
            watch.meter.forget(task);
        }
        self.partners.all.remove(&task);
        self.partners.in_doubt = true;
        for process in self.processes.values_mut() {
            process.threads.remove(&task);
        }
        // A process whose first thread has ended may go on without it.
        self.processes
            .retain(|id, process| *id != task || (process.whole && !process.threads.is_empty()));
    }

    /// `holder` no longer wants anything: returns all that no other holder wants either.
    pub fn drop_holder(&mut self, holder: &Holder) -> Dropped {
        let mut dropped = Dropped::default();
        for (id, process) in &mut self.processes {
            process.leases.retain(|lease, _| lease.holder != *holder);
            if process.leases.is_empty() {
                dropped.processes.push(*id);
            }
        }
        let held = self
            .explicit
            .iter()
            .filter(|(_, grant)| grant.holder == *holder);
        dropped.explicit.extend(held.map(|(id, _)| *id));
        dropped
    }

    /// `holder` no longer wants `task`, nor the tasks tracked because of it: returns those that no
    /// other holder wants either and that it did not ask for separately. None if it does not want
    /// `task` anyway.
    pub fn drop_lease(&mut self, holder: &Holder, task: TaskId) -> Option<Vec<TaskId>> {
        let process = self.processes.get(&task)?;
        process.holders().find(|own| *own == holder)?;
        for (id, process) in &mut self.processes {
            process.leases.retain(|lease, _| {
                lease.holder != *holder || (lease.asked_for != task && *id != task)
            });
        }
        let unwanted = self
            .processes
            .iter()
            .filter(|(_, process)| process.leases.is_empty());
        Some(unwanted.map(|(id, _)| *id).collect())
    }

    /// Takes `process` out. Returns its threads that nothing else has tracked. The others are
    /// charged as before.
    pub fn take_out(&mut self, process: TaskId) -> Vec<TaskId> {
        let Some(process) = self.processes.remove(&process) else {
            return Vec::new();
        };
        self.partners.in_doubt = true;
        let mut gone = Vec::new();
        for thread in process.threads {
            let mut others = self.processes.values_mut();
            let other = others
                .find(|other| other.pid == process.pid && (other.whole || other.task == thread));
            let Some(other) = other else {
                gone.push(thread);
                continue;
            };
            if !other.threads.insert(thread) {
                // It was here for both.
                self.ledger.leave(thread);
            }
        }
        gone
    }

    /// The payer of a task may want it no longer, while another holder does: that one pays from
    /// here on. Returns the threads that it may not have, which belong to no holder any more.
    pub fn settle_payers(&mut self) -> Vec<TaskId> {
        let mut beyond = Vec::new();
        let mut passed_on = Vec::new();
        for (id, process) in &mut self.processes {
            let leases = &process.leases;
            let wants = |holder: &Holder| leases.keys().any(|lease| lease.holder == *holder);
            process.payers.retain(|holder, _| wants(holder));
            let payer = process.payer_of(&process.leases);
            if payer != process.account {
                passed_on.push((*id, payer));
            }
        }
        for (id, payer) in passed_on {
            let Some(process) = self.processes.get_mut(&id) else {
                continue;
            };
            let former = std::mem::replace(&mut process.account, Arc::clone(&payer));
            let threads: Vec<TaskId> = process.threads.iter().copied().collect();
            for thread in threads {
                let mut others = self.processes.values();
                let is_paid = others.any(|other| {
                    other.task != id && other.account == former && other.threads.contains(&thread)
                });
                // A user who reserved for it pays for it.
                if is_paid || self.explicit.contains_key(&thread) {
                    continue;
                }
                match self.ledger.hand_over(thread, &payer) {
                    Ok(()) => self.settle_lending(thread),
                    Err(_) => beyond.push(thread),
                }
            }
        }
        self.partners.in_doubt |= !beyond.is_empty();
        for process in self.processes.values_mut() {
            process.threads.retain(|thread| !beyond.contains(thread));
        }
        beyond
    }

    /// The thread `task` of the user `uid` may work for the tracked thread `of`, and is to be
    /// tracked for that: it is charged to the same account as `of`. Root's request or a rule that
    /// frees `of` from quotas does not free its partners: these are charged to their user.
    /// Fails with why not, if that is worth telling: it is another user's, or one too many. Else it
    /// is tracked already, or no client asked for `of`.
    pub fn admit_partner(
        &mut self,
        task: &Task,
        uid: u32,
        of: TaskId,
    ) -> Result<(), Option<String>> {
        let Some((owner, account)) = self.behind(of) else {
            return Err(None);
        };
        if owner != Some(uid) {
            return Err(Some(format!("it is not yours, but of user {uid}")));
        }
        // The bandwidth of a rule is for what the rule names: a container, not what serves it.
        if account.allotment.is_some() {
            return Err(None);
        }
        let mut processes = self.processes.values();
        let is_known = processes.any(|process| process.threads.contains(&task.id));
        if is_known || self.partners.all.contains_key(&task.id) {
            return Err(None);
        }
        let entered = self.ledger.enter(task.id, &account);
        entered.map_err(|error| Some(error.to_string()))?;
        let partner = ChargedPartner {
            pid: task.pid,
            owner: uid,
            of,
            account,
        };
        self.partners.all.insert(task.id, partner);
        Ok(())
    }

    /// The owner of the tracked thread, and the account that a partner of it is charged to.
    fn behind(&self, of: TaskId) -> Option<(Option<u32>, Arc<Account>)> {
        if let Some(partner) = self.partners.all.get(&of) {
            return Some((Some(partner.owner), Arc::clone(&partner.account)));
        }
        let mut processes = self.processes.values();
        let process = processes.find(|process| process.threads.contains(&of))?;
        let account = match process.owner {
            Some(owner) if process.account.is_exempt => directory::now(owner),
            _ => Arc::clone(&process.account),
        };
        Some((process.owner, account))
    }

    /// Something is tracked no longer. The partner `task` works for these tracked threads by now:
    /// from here on it is charged for one of them, unless the one that it is charged for is still
    /// there. Whether there is one.
    /// Fails if it is more than that one's owner may have.
    pub fn follow(&mut self, task: TaskId, users: &[TaskId]) -> Result<bool, QuotaError> {
        let Some(partner) = self.partners.all.get(&task) else {
            return Ok(false);
        };
        let (owner, former) = (partner.owner, partner.of);
        let users = std::iter::once(former).chain(users.iter().copied());
        let mut users = users.filter_map(|user| Some((user, self.behind(user)?)));
        let Some((of, (_, account))) = users.find(|(_, (whose, _))| *whose == Some(owner)) else {
            return Ok(false);
        };
        // A user who reserved for it pays for it.
        if of != former && !self.explicit.contains_key(&task) {
            self.ledger.hand_over(task, &account)?;
            if let Some(partner) = self.partners.all.get_mut(&task) {
                (partner.of, partner.account) = (of, account);
            }
            self.settle_lending(task);
        }
        Ok(true)
    }

    /// The thread is tracked no longer, and charged to its user until it is dropped.
    pub fn dismiss_partner(&mut self, task: TaskId) {
        if self.partners.all.contains_key(&task) {
            self.partners.dismissed.push(task);
        }
    }

    /// The thread is not to be tracked for another one any more. A thread that was asked for is
    /// left alone. Whether it was a partner.
    pub fn drop_partner(&mut self, task: TaskId) -> bool {
        let was = self.partners.all.remove(&task).is_some();
        self.partners.dismissed.retain(|other| *other != task);
        if was {
            self.partners.in_doubt = true;
            self.ledger.leave(task);
        }
        was
    }

    pub fn party(&self, task: TaskId) -> Party {
        let payer = self.ledger.account(task).map_or(0, |account| account.uid);
        let own = self.processes.get_key_value(&task);
        let own = own.filter(|(_, process)| process.shares.is_some());
        let mut processes = self.processes.iter();
        let found = own.or_else(|| processes.find(|(_, process)| process.threads.contains(&task)));
        let process = found.map(|(_, process)| process);
        let owner = match (self.partners.all.get(&task), process) {
            (Some(partner), _) => Some(partner.owner),
            (None, process) => process.and_then(|process| process.owner),
        };
        // The machine's own, which an administrator has kept: an X server, say.
        let is_everybodys =
            process.is_some_and(|process| process.owner == Some(0) && process.account.is_exempt);
        Party {
            payer,
            owner,
            is_everybodys,
            application: found.map(|(id, process)| {
                let own = process.origin.unwrap_or(*id).tid;
                process.shares.unwrap_or(own)
            }),
        }
    }

    pub fn holders(&self) -> usize {
        let processes = self.processes.values().flat_map(TrackedProcess::holders);
        let explicit = self.explicit.values().map(|grant| &grant.holder);
        processes.chain(explicit).collect::<BTreeSet<_>>().len()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    pub processes: Vec<TaskId>,
    pub explicit: Vec<TaskId>,
}

#[cfg(test)]
mod tests;
