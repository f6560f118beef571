//! The ledger: the charges of each account.
//!
//! A user's tasks are charged to him and to each of his groups that has a quota, and must fit into
//! all of them. So nothing is gained by changing groups, by a second connection, or by a task that
//! comes and goes: what counts is the sum over the owner's tasks at any moment.
//!
//! Pure: it knows tasks and numbers of users, and no kernel.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use onbeat_model::{Bandwidth, Instant, Reservation, Span, TaskId};

use crate::account::Account;
use crate::quota::{Quota, QuotaError, Quotas, Used, Whose, density};

mod spending;

use spending::{Spending, ns};

const LONGEST_SOFT_PERIOD: Span = Span::from_ms(200);
/// The time within which the kernel frees a task that has ended. Some 0.1 s on a busy machine.
const FREED_WITHIN: Span = Span::from_secs(2);

#[derive(Clone, Debug)]
struct Charge {
    account: Arc<Account>,
    held: Option<Reservation>,
    /// The CPU time that it has used since it last blocked, as far as `own` has it.
    counted: Span,
    /// The bucket of its own; none before it has used a reservation.
    own: Option<Spending>,
    /// It is boosted: it goes before ordinary tasks without a reservation.
    is_boosted: bool,
    /// For how many reasons the task is in the ledger. None: the kernel holds its bandwidth yet.
    reasons: u32,
}

impl Charge {
    fn used(&self) -> Used {
        Used::by(self.held)
    }

    /// It goes before ordinary tasks.
    const fn goes_ahead(&self) -> bool {
        self.held.is_some() || self.is_boosted
    }
}

/// A reservation that its task left by other hands than ours: the kernel may count its bandwidth
/// for good.
#[derive(Clone, Debug)]
struct Leak {
    account: Arc<Account>,
    charged: Bandwidth,
    /// The bandwidth that the kernel may count for it.
    counted: Bandwidth,
    is_told: bool,
}

/// A task that ended while it held a reservation, which it may have left just before.
#[derive(Clone, Debug)]
struct Ended {
    task: TaskId,
    held: Leak,
    /// When it was first asked how the task ended.
    asked: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    quotas: Quotas,
    tasks: HashMap<TaskId, Charge>,
    users: HashMap<u32, Used>,
    groups: HashMap<u32, Used>,
    rules: HashMap<u64, Used>,
    spending: HashMap<Whose, Spending>,
    /// The CPU time that all tasks may still use before boosts end; none before the first use.
    spending_of_all: Option<Spending>,
    /// Those that the meter charges, and what they had spent when it was last read. Their numbers
    /// count from 1.
    payers: Vec<(Arc<Account>, Span)>,
    leaks: Vec<Leak>,
    ended: Vec<Ended>,
    /// Tasks whose reservations may be over, or have become ceilings, or no longer be.
    to_reconsider: Vec<TaskId>,
}

impl Ledger {
    pub fn new(quotas: Quotas) -> Self {
        Self {
            quotas,
            ..Self::default()
        }
    }

    pub const fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Other quotas from now on, for the same who sit at the machine. Charges stay, even if they
    /// are more than is now allowed: nothing is added to it then.
    pub fn set_quotas(&mut self, quotas: Quotas) {
        let seated = std::mem::take(&mut self.quotas.seated);
        self.quotas = Quotas { seated, ..quotas };
    }

    /// These users sit at the machine from `now` on. A bucket grows, and is not filled by that, so
    /// that nothing is gained by coming and going.
    pub fn set_seated(&mut self, seated: BTreeSet<u32>, now: Instant) {
        for &uid in seated.difference(&self.quotas.seated) {
            if let Some(quota) = self.quotas.of_user(uid) {
                let full = Spending::new(quota.bandwidth, now);
                self.spending.entry(Whose::User(uid)).or_insert(full);
            }
        }
        self.quotas.seated = seated;
    }

    /// Enters `task` of `account` for one more reason. The first one counts it.
    /// Fails if it is one task too many, or what it has is charged to another user who has left it.
    pub fn enter(&mut self, task: TaskId, account: &Arc<Account>) -> Result<(), QuotaError> {
        if let Some(charge) = self.tasks.get_mut(&task) {
            if charge.reasons == 0 && charge.account != *account {
                return Err(QuotaError::Unsettled);
            }
            charge.reasons += 1;
            return Ok(());
        }
        for (whose, quota) in self.quotas_of(account) {
            if self.used(whose).tasks >= quota.tasks {
                return Err(QuotaError::Tasks {
                    whose,
                    most: quota.tasks,
                });
            }
        }
        let charge = Charge {
            account: Arc::clone(account),
            held: None,
            counted: Span::ZERO,
            own: None,
            is_boosted: false,
            reasons: 1,
        };
        self.tasks.insert(task, charge);
        self.count(account, |used| used.add(Used::ONE_TASK));
        Ok(())
    }

    /// One reason less for `task` to be here; the last one takes it out, as soon as it has no
    /// bandwidth. A reservation that was used up cannot be given back at once, and counts until it
    /// is.
    pub fn leave(&mut self, task: TaskId) {
        let Some(charge) = self.tasks.get_mut(&task) else {
            return;
        };
        charge.reasons = charge.reasons.saturating_sub(1);
        self.drop_if_over(task);
    }

    fn drop_if_over(&mut self, task: TaskId) {
        let over = |charge: &Charge| charge.reasons == 0 && charge.held.is_none();
        if self.tasks.get(&task).is_some_and(over)
            && let Some(charge) = self.tasks.remove(&task)
        {
            self.count(&charge.account, |used| used.take(Used::ONE_TASK));
        }
    }

    pub fn remove(&mut self, task: TaskId) {
        if let Some(charge) = self.tasks.get_mut(&task) {
            charge.reasons = 0;
        }
        self.gone(task);
    }

    /// Whether `reservation` for `task`, instead of what it has, is within every quota.
    /// Fails with the first quota that it is not within.
    pub fn admits(&self, task: TaskId, reservation: Reservation) -> Result<(), QuotaError> {
        let charge = self.tasks.get(&task).ok_or(QuotaError::Unknown)?;
        let mut quotas = self.quotas_of(&charge.account);
        let error = quotas.find_map(|(whose, quota)| {
            let others = self.used(whose).without(charge.used());
            quota.error(whose, reservation, others)
        });
        match error {
            // All quotas count, not the first that objects.
            Some(QuotaError::Bandwidth { whose, most, .. }) => {
                let left = self.left(task);
                Err(QuotaError::Bandwidth { whose, most, left })
            }
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    pub fn left(&self, task: TaskId) -> Bandwidth {
        let Some(charge) = self.tasks.get(&task) else {
            return Bandwidth::ZERO;
        };
        let left = self.quotas_of(&charge.account).map(|(whose, quota)| {
            quota.bandwidth - self.used(whose).without(charge.used()).bandwidth
        });
        left.min()
            .unwrap_or(Bandwidth::from_cpus(f64::from(u16::MAX)))
    }

    /// `task`, with all that it has, is charged to `account` from now on.
    /// Fails if it is one task too many for him, has more than he has left, or a shorter period
    /// than he may have. It is then charged as before.
    pub fn hand_over(&mut self, task: TaskId, account: &Arc<Account>) -> Result<(), QuotaError> {
        let Some(charge) = self.tasks.get(&task) else {
            return Err(QuotaError::Unknown);
        };
        let (former, held) = (Arc::clone(&charge.account), charge.held);
        let mut used = charge.used();
        used.add(Used::ONE_TASK);
        if former == *account {
            return Ok(());
        }
        self.count(&former, |of_former| of_former.take(used));
        let mut quotas = self.quotas_of(account);
        let error = quotas.find_map(|(whose, quota)| {
            let others = self.used(whose);
            if others.tasks >= quota.tasks {
                let most = quota.tasks;
                return Some(QuotaError::Tasks { whose, most });
            }
            quota.error(whose, held?, others)
        });
        drop(quotas);
        let (payer, outcome) = match error {
            Some(error) => (&former, Err(error)),
            None => (account, Ok(())),
        };
        self.count(payer, |of_payer| of_payer.add(used));
        if let Some(charge) = self.tasks.get_mut(&task) {
            charge.account = Arc::clone(payer);
        }
        outcome
    }

    /// `task` has the reservation `held` now, or none, instead of what it had.
    pub fn charge(&mut self, task: TaskId, held: Option<Reservation>) {
        let Some(charge) = self.tasks.get_mut(&task) else {
            return;
        };
        let before = charge.used();
        charge.held = held;
        charge.is_boosted &= held.is_none();
        let after = charge.used();
        let account = Arc::clone(&charge.account);
        self.count(&account, |used| {
            used.take(before);
            used.add(after);
        });
        self.drop_if_over(task);
    }

    /// `task` no longer has what it held, and not because it was given back: another program, its
    /// owner's perhaps, gave it another policy. The kernel counts it for good if it slept then, so
    /// its bandwidth stays charged, until the kernel has [recounted](Self::recounted). Its owner's
    /// quota bounds what can leak like that.
    pub fn taken_over(&mut self, task: TaskId) {
        let leak = self.keep_charged(task);
        self.leaks.extend(leak);
    }

    /// `task` has ended. Its reservation stays charged until it is [known](Self::settle_ended) that
    /// the task held it to its end.
    pub fn gone(&mut self, task: TaskId) {
        let held = self.keep_charged(task);
        self.ended.extend(held.map(|held| Ended {
            task,
            held,
            asked: None,
        }));
    }

    /// `task` holds nothing any more, but its bandwidth stays charged.
    fn keep_charged(&mut self, task: TaskId) -> Option<Leak> {
        let leak = self.tasks.get(&task).and_then(|charge| {
            let held = charge.held?;
            Some(Leak {
                account: Arc::clone(&charge.account),
                charged: density(held),
                counted: held.bandwidth(),
                is_told: false,
            })
        });
        self.charge(task, None);
        if let Some(leak) = &leak {
            self.count(&leak.account, |used| used.bandwidth += leak.charged);
        }
        leak
    }

    /// Reservations of tasks that have ended are charged no longer, or, if a task had left its own
    /// or that cannot be known, as long as one that was [taken over](Self::taken_over). `has_left`
    /// tells, and says none as long as the kernel does not. Returns the tasks that are settled.
    pub fn settle_ended(
        &mut self,
        now: Instant,
        has_left: impl Fn(TaskId) -> Option<bool>,
    ) -> Vec<TaskId> {
        let mut settled = Vec::new();
        for mut ended in std::mem::take(&mut self.ended) {
            let is_late = now.since(*ended.asked.get_or_insert(now)) >= FREED_WITHIN;
            let Some(has_left) = has_left(ended.task).or(is_late.then_some(true)) else {
                self.ended.push(ended);
                continue;
            };
            settled.push(ended.task);
            if has_left {
                self.leaks.push(ended.held);
            } else {
                self.uncharge(&ended.held);
            }
        }
        settled
    }

    fn uncharge(&mut self, leak: &Leak) {
        self.count(&leak.account, |used| {
            used.bandwidth = used.bandwidth - leak.charged;
        });
    }

    /// The kernel has recounted, and counts nothing any more that is not there.
    pub fn recounted(&mut self) {
        for leak in std::mem::take(&mut self.leaks) {
            self.uncharge(&leak);
        }
    }

    pub fn leaked(&self) -> Bandwidth {
        self.leaks.iter().map(|leak| leak.counted).sum()
    }

    /// The users of whom something may have leaked since this was last called, each with all that
    /// may have.
    pub fn take_new_leaks(&mut self) -> BTreeMap<u32, Bandwidth> {
        let mut leaked = BTreeMap::new();
        let mut new = BTreeSet::new();
        for leak in &mut self.leaks {
            let uid = leak.account.uid;
            *leaked.entry(uid).or_insert(Bandwidth::ZERO) += leak.counted;
            if !std::mem::replace(&mut leak.is_told, true) {
                new.insert(uid);
            }
        }
        leaked.retain(|uid, _| new.contains(uid));
        leaked
    }

    /// `task` blocked at `now`, after it had used `executed`: that is taken from its own bucket, by
    /// which it is known who uses more than he holds. Quotas go by the [meter](Self::metered).
    pub fn blocked(&mut self, task: TaskId, executed: Span, now: Instant) {
        if let Some(charge) = self.tasks.get_mut(&task) {
            let counted = std::mem::take(&mut charge.counted);
            self.spend_own(task, ns(executed) - ns(counted), now);
        }
    }

    /// The number by which the meter is to charge `task`; 0 if nobody pays for it.
    pub fn payer(&mut self, task: TaskId) -> u32 {
        let Some(charge) = self.tasks.get(&task) else {
            return 0;
        };
        let known = (self.payers.iter()).position(|(payer, _)| *payer == charge.account);
        let place = known.unwrap_or_else(|| {
            self.payers.push((Arc::clone(&charge.account), Span::ZERO));
            self.payers.len() - 1
        });
        u32::try_from(place + 1).unwrap_or(0)
    }

    /// Takes what the payers' tasks have used above ordinary priority, and who inherited that, from
    /// their quotas. `spent` tells all that the payer of a number ever spent.
    pub fn metered(&mut self, spent: impl Fn(u32) -> Span, now: Instant) {
        for place in 0..self.payers.len() {
            let total = spent(u32::try_from(place + 1).unwrap_or(0));
            let Some((account, before)) = self.payers.get_mut(place) else {
                continue;
            };
            let used = total - std::mem::replace(before, total);
            let account = Arc::clone(account);
            if used > Span::ZERO {
                self.spend(&account, used, now);
            }
        }
    }

    pub fn set_boosted(&mut self, task: TaskId, is_boosted: bool) {
        if let Some(charge) = self.tasks.get_mut(&task) {
            charge.is_boosted = is_boosted;
        }
    }

    pub fn is_boosted(&self, task: TaskId) -> bool {
        self.tasks
            .get(&task)
            .is_some_and(|charge| charge.is_boosted)
    }

    /// Until when `task` may not be boosted: its owner has used more than a quota gives, or all
    /// have used what there is for them.
    pub fn unboosted_until(&self, task: TaskId) -> Option<Instant> {
        let account = self.account(task)?;
        let all = self.spending_of_all.filter(Spending::is_over);
        let of_all = all.zip(self.quotas.all);
        let of_all = of_all.map(|(all, most)| all.made_up_at(most));
        self.made_up_at(account).max(of_all)
    }

    pub fn used_up(&self, task: TaskId) -> Option<(Whose, Bandwidth)> {
        let mut quotas = self.quotas_of(self.account(task)?);
        let (whose, quota) = quotas.find(|(whose, _)| {
            let spending = self.spending.get(whose);
            spending.is_some_and(Spending::is_over)
        })?;
        Some((whose, quota.bandwidth))
    }

    fn made_up_at(&self, account: &Account) -> Option<Instant> {
        let over = self.quotas_of(account).filter_map(|(whose, quota)| {
            let spending = self.spending.get(&whose).filter(|s| s.is_over())?;
            Some(spending.made_up_at(quota.bandwidth))
        });
        over.max()
    }

    /// The runtime of `task` was used up at `now`, and it goes on: it has used all of a period at
    /// most. An excess is refunded when it blocks.
    pub fn ran_out(&mut self, task: TaskId, now: Instant) {
        if let Some(charge) = self.tasks.get_mut(&task)
            && let Some(held) = charge.held
        {
            charge.counted += held.period();
            self.spend_own(task, ns(held.period()), now);
        }
    }

    fn spend_own(&mut self, task: TaskId, used_ns: i64, now: Instant) {
        if let Some(charge) = self.tasks.get_mut(&task)
            && let Some(held) = charge.held
        {
            // It begins with one job's: many tasks, one after the other, get no more than their
            // quota.
            let own = Spending::of(held.runtime(), now);
            let own = charge.own.get_or_insert(own);
            own.spend(used_ns, held.bandwidth(), now);
            if own.is_over() {
                self.to_reconsider.push(task);
            }
        }
    }

    fn spend(&mut self, account: &Account, used: Span, now: Instant) {
        let quotas: Vec<(Whose, Quota)> = self.quotas_of(account).collect();
        for (whose, quota) in quotas {
            let full = Spending::new(quota.bandwidth, now);
            let spending = self.spending.entry(whose).or_insert(full);
            if spending.spend(ns(used), quota.bandwidth, now) {
                self.reconsider(whose);
            }
        }
        if let Some(most) = self.quotas.all {
            let full = Spending::new(most, now);
            let all = self.spending_of_all.get_or_insert(full);
            if all.spend(ns(used), most, now) {
                let boosted = self.tasks.iter().filter(|(_, charge)| charge.is_boosted);
                self.to_reconsider.extend(boosted.map(|(task, _)| *task));
            }
        }
    }

    fn reconsider(&mut self, whose: Whose) {
        let held = self.tasks.iter().filter(|(_, charge)| {
            let is_theirs = match whose {
                Whose::User(uid) => charge.account.uid == uid,
                Whose::Group(gid) => charge.account.groups.contains(&gid),
                Whose::Rule(rule) => charge.account.allotment.is_some_and(|own| own.rule == rule),
            };
            is_theirs && charge.goes_ahead()
        });
        self.to_reconsider.extend(held.map(|(task, _)| *task));
    }

    /// Time has passed: users within their quotas meanwhile may have soft reservations again.
    pub fn refill(&mut self, now: Instant) {
        if let Some((all, most)) = self.spending_of_all.as_mut().zip(self.quotas.all) {
            all.spend(0, most, now);
        }
        let whose: Vec<Whose> = self.spending.keys().copied().collect();
        for whose in whose {
            let quota = match whose {
                Whose::User(uid) => self.quotas.of_user(uid),
                Whose::Group(gid) => self.quotas.groups.get(&gid).copied(),
                Whose::Rule(rule) => {
                    let mut allotments = self.tasks.values().map(|charge| charge.account.allotment);
                    let own = allotments.find_map(|own| own.filter(|own| own.rule == rule));
                    own.map(|own| self.quotas.of_rule(own))
                }
            };
            let spending = self.spending.get_mut(&whose).zip(quota);
            let Some((spending, quota)) = spending else {
                self.spending.remove(&whose);
                self.reconsider(whose);
                continue;
            };
            let changed = spending.spend(0, quota.bandwidth, now);
            if spending.is_full(quota.bandwidth) {
                self.spending.remove(&whose);
            }
            if changed {
                self.reconsider(whose);
            }
        }
    }

    /// Whether `reservation` is to be a ceiling for `task`: under a quota one is if the sensor does
    /// not hear the task or if its period is long, and each while its user has used more.
    pub fn is_ceiling(&self, task: TaskId, reservation: Reservation, hears: bool) -> bool {
        let is_late = !hears || reservation.period() > LONGEST_SOFT_PERIOD;
        self.account(task).is_some_and(|account| {
            (is_late && self.quotas_of(account).next().is_some())
                || self.made_up_at(account).is_some()
        })
    }

    /// Until when `task` is to have no reservation that onbeat sizes: it has used more than it
    /// held, and its owner more than a quota gives.
    pub fn goes_without_until(&self, task: TaskId) -> Option<Instant> {
        let charge = self.tasks.get(&task)?;
        charge.own.filter(Spending::is_over)?;
        self.made_up_at(&charge.account)
    }

    /// The tasks whose boosts or reservations may have to end, or whose reservations may become
    /// ceilings, or be none any more, since this was last called.
    pub fn take_to_reconsider(&mut self) -> Vec<TaskId> {
        let mut tasks = std::mem::take(&mut self.to_reconsider);
        tasks.retain(|task| self.tasks.get(task).is_some_and(Charge::goes_ahead));
        tasks
    }

    /// The tasks that are here only for what the kernel holds for them yet.
    pub fn unsettled(&self) -> impl Iterator<Item = TaskId> + '_ {
        let unsettled = self.tasks.iter().filter(|(_, charge)| charge.reasons == 0);
        unsettled.map(|(task, _)| *task)
    }

    /// Whether `task` has a reservation from here: the kernel holds it, or what is left of it.
    pub fn holds(&self, task: TaskId) -> bool {
        self.held(task).is_some()
    }

    pub fn held(&self, task: TaskId) -> Option<Reservation> {
        self.tasks.get(&task)?.held
    }

    pub fn account(&self, task: TaskId) -> Option<&Arc<Account>> {
        self.tasks.get(&task).map(|charge| &charge.account)
    }

    /// The charges of the user: bandwidth and tasks.
    pub fn charged_to(&self, uid: u32) -> (Bandwidth, u32) {
        let used = self.used(Whose::User(uid));
        (used.bandwidth, used.tasks)
    }

    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    fn quotas_of<'a>(&'a self, account: &'a Account) -> impl Iterator<Item = (Whose, Quota)> + 'a {
        let own = match account.allotment {
            Some(own) => Some((Whose::Rule(own.rule), self.quotas.of_rule(own))),
            None => self
                .quotas
                .of_user(account.uid)
                .filter(|_| !account.is_exempt)
                .map(|quota| (Whose::User(account.uid), quota)),
        };
        let groups = account.groups.iter().filter(|_| !account.is_exempt);
        let shared =
            groups.filter_map(|gid| Some((Whose::Group(*gid), *self.quotas.groups.get(gid)?)));
        own.into_iter().chain(shared)
    }

    fn used(&self, whose: Whose) -> Used {
        let used = match whose {
            Whose::User(uid) => self.users.get(&uid),
            Whose::Group(gid) => self.groups.get(&gid),
            Whose::Rule(rule) => self.rules.get(&rule),
        };
        used.copied().unwrap_or_default()
    }

    /// Counts for the user and for every group of his, whether or not it has a quota today.
    fn count(&mut self, account: &Account, change: impl Fn(&mut Used)) {
        if let Some(allotment) = account.allotment {
            return apply(&mut self.rules, allotment.rule, &change);
        }
        if account.is_exempt {
            return;
        }
        apply(&mut self.users, account.uid, &change);
        for &gid in &account.groups {
            apply(&mut self.groups, gid, &change);
        }
    }
}

/// A user, group or rule without charges is forgotten.
fn apply<N: Copy + Eq + Hash>(all: &mut HashMap<N, Used>, number: N, change: &impl Fn(&mut Used)) {
    let used = all.entry(number).or_default();
    change(used);
    if *used == Used::default() {
        all.remove(&number);
    }
}

#[cfg(test)]
mod tests;
