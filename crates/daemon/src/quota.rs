//! Who may have how much: quotas of users and groups, and the ledger of what is charged to whom.
//!
//! A user's tasks are charged to him and to each of his groups that has a quota, and must fit into all of
//! them. So nothing is gained by changing groups, by a second connection, or by a task that comes and
//! goes: what counts is the sum over the owner's tasks at any moment. (Per-user and per-group limits as
//! AQuoSA's supervisor has them; there a group's limit holds for each member, here for all together.)
//!
//! Pure: it knows tasks and numbers of users, and no kernel.

use std::collections::HashMap;
use std::sync::Arc;

use onbeat_model::{Bandwidth, Instant, Reservation, Span, TaskId};

use crate::person::Person;

mod objection;
mod spending;

pub use objection::{Objection, Whose};
use spending::{LONGEST_SOFT_PERIOD, Spending};

/// What somebody may have at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quota {
    /// All his reservations together.
    pub bandwidth: Bandwidth,
    /// How many tasks of his are tracked, reserved for or given a priority, together.
    pub tasks: u32,
    /// The shortest period of a reservation. Short ones cost the scheduler more.
    pub shortest_period: Span,
}

impl Default for Quota {
    /// Half a CPU, 64 tasks, and no period below a millisecond.
    fn default() -> Self {
        Self {
            bandwidth: Bandwidth::from_cpus(0.5),
            tasks: 64,
            shortest_period: Span::from_ms(1),
        }
    }
}

impl Quota {
    fn admits_period(&self, whose: Whose, reservation: Reservation) -> Result<(), Objection> {
        let (period, shortest) = (reservation.period(), self.shortest_period);
        if period < shortest {
            return Err(Objection::Period {
                whose,
                period,
                shortest,
            });
        }
        Ok(())
    }
}

/// The quotas in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quotas {
    /// A user's for whom nothing else is said.
    pub default: Quota,
    /// By number of the user.
    pub users: HashMap<u32, Quota>,
    /// By number of the group: for all its members together.
    pub groups: HashMap<u32, Quota>,
}

impl Quotas {
    /// What holds for the user alone; root is under none.
    #[must_use]
    pub fn of_user(&self, uid: u32) -> Option<Quota> {
        (uid != 0).then(|| self.users.get(&uid).copied().unwrap_or(self.default))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    bandwidth: Bandwidth,
    tasks: u32,
}

#[derive(Clone, Debug)]
struct Charge {
    person: Arc<Person>,
    held: Option<Reservation>,
    /// What it has used since it last blocked, as far as that is counted.
    counted: Span,
    /// For how many reasons the task is in the ledger. None: the kernel holds its bandwidth yet.
    reasons: u32,
}

impl Charge {
    fn bandwidth(&self) -> Bandwidth {
        self.held.map_or(Bandwidth::ZERO, |held| held.bandwidth())
    }
}

/// What is charged to whom.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    quotas: Quotas,
    tasks: HashMap<TaskId, Charge>,
    users: HashMap<u32, Used>,
    groups: HashMap<u32, Used>,
    spending: HashMap<Whose, Spending>,
    /// Tasks whose reservations may have become ceilings, or no longer be.
    to_reconsider: Vec<TaskId>,
}

impl Ledger {
    /// An empty one.
    #[must_use]
    pub fn new(quotas: Quotas) -> Self {
        Self {
            quotas,
            ..Self::default()
        }
    }

    /// The quotas in force.
    #[must_use]
    pub const fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Other quotas from now on. What is charged stays, even where it is more than is now allowed: nothing
    /// is added to it then.
    pub fn set_quotas(&mut self, quotas: Quotas) {
        self.quotas = quotas;
    }

    /// Enters `task` of `person` for one more reason. The first one counts it.
    ///
    /// # Errors
    /// If it is one task too many, or what it has is charged to somebody else who has left it.
    pub fn enter(&mut self, task: TaskId, person: &Arc<Person>) -> Result<(), Objection> {
        if let Some(charge) = self.tasks.get_mut(&task) {
            if charge.reasons == 0 && charge.person != *person {
                return Err(Objection::Unsettled);
            }
            charge.reasons += 1;
            return Ok(());
        }
        for (whose, quota) in self.quotas_of(person) {
            if self.used(whose).tasks >= quota.tasks {
                return Err(Objection::Tasks {
                    whose,
                    most: quota.tasks,
                });
            }
        }
        let charge = Charge {
            person: Arc::clone(person),
            held: None,
            counted: Span::ZERO,
            reasons: 1,
        };
        self.tasks.insert(task, charge);
        self.count(person, |used| used.tasks += 1);
        Ok(())
    }

    /// One reason less for `task` to be here; the last one takes it out, as soon as it has no bandwidth. A
    /// reservation that was used up cannot be given back at once, and counts until it is.
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
            self.count(&charge.person, |used| {
                used.tasks = used.tasks.saturating_sub(1)
            });
        }
    }

    /// Takes `task`, which is gone, out for good.
    pub fn remove(&mut self, task: TaskId) {
        if let Some(charge) = self.tasks.get_mut(&task) {
            charge.reasons = 0;
        }
        self.charge(task, None);
    }

    /// Whether `reservation` for `task`, instead of what it has, is within every quota.
    ///
    /// # Errors
    /// The first quota that it is not within.
    pub fn admits(&self, task: TaskId, reservation: Reservation) -> Result<(), Objection> {
        let charge = self.tasks.get(&task).ok_or(Objection::Unknown)?;
        for (whose, quota) in self.quotas_of(&charge.person) {
            quota.admits_period(whose, reservation)?;
            let others = self.used(whose).bandwidth - charge.bandwidth();
            let left = quota.bandwidth - others;
            if reservation.bandwidth() > left {
                return Err(Objection::Bandwidth {
                    whose,
                    most: quota.bandwidth,
                    left: self.left(task),
                });
            }
        }
        Ok(())
    }

    /// The most bandwidth that `task` could be given instead of what it has.
    #[must_use]
    pub fn left(&self, task: TaskId) -> Bandwidth {
        let Some(charge) = self.tasks.get(&task) else {
            return Bandwidth::ZERO;
        };
        let left = self.quotas_of(&charge.person).map(|(whose, quota)| {
            quota.bandwidth - (self.used(whose).bandwidth - charge.bandwidth())
        });
        left.min()
            .unwrap_or(Bandwidth::from_cpus(f64::from(u16::MAX)))
    }

    /// `task`, with all that it has, is charged to `person` from now on.
    ///
    /// # Errors
    /// If it is one task too many for him, has more than he has left, or a shorter period than he may have. It is then
    /// charged as before.
    pub fn hand_over(&mut self, task: TaskId, person: &Arc<Person>) -> Result<(), Objection> {
        let Some(charge) = self.tasks.get(&task) else {
            return Err(Objection::Unknown);
        };
        let (former, held) = (Arc::clone(&charge.person), charge.held);
        let bandwidth = charge.bandwidth();
        if former == *person {
            return Ok(());
        }
        self.count(&former, |used| {
            used.tasks = used.tasks.saturating_sub(1);
            used.bandwidth = used.bandwidth - bandwidth;
        });
        let mut quotas = self.quotas_of(person);
        let objection = quotas.find_map(|(whose, quota)| {
            let used = self.used(whose);
            let (most, left) = (quota.bandwidth, quota.bandwidth - used.bandwidth);
            if used.tasks >= quota.tasks {
                let most = quota.tasks;
                return Some(Objection::Tasks { whose, most });
            }
            if bandwidth > left {
                return Some(Objection::Bandwidth { whose, most, left });
            }
            held.and_then(|held| quota.admits_period(whose, held).err())
        });
        drop(quotas);
        let (payer, outcome) = match objection {
            Some(objection) => (&former, Err(objection)),
            None => (person, Ok(())),
        };
        self.count(payer, |used| {
            used.tasks += 1;
            used.bandwidth += bandwidth;
        });
        if let Some(charge) = self.tasks.get_mut(&task) {
            charge.person = Arc::clone(payer);
        }
        outcome
    }

    /// `task` has the reservation `held` now, or none, instead of what it had.
    pub fn charge(&mut self, task: TaskId, held: Option<Reservation>) {
        let Some(charge) = self.tasks.get_mut(&task) else {
            return;
        };
        let before = charge.bandwidth();
        charge.held = held;
        let bandwidth = charge.bandwidth();
        let person = Arc::clone(&charge.person);
        self.count(&person, |used| {
            used.bandwidth = used.bandwidth - before + bandwidth;
        });
        self.drop_if_over(task);
    }

    /// `task` blocked at `now`, after it had used `executed`: that is taken from its owner's quotas if it has a
    /// reservation.
    pub fn blocked(&mut self, task: TaskId, executed: Span, now: Instant) {
        if let Some(charge) = self.tasks.get_mut(&task).filter(|c| c.held.is_some()) {
            let rest = executed - std::mem::take(&mut charge.counted);
            self.spend(task, rest, now);
        }
    }

    /// The runtime of `task` was used up at `now`, and it goes on: it has used all of a period at most.
    pub fn ran_out(&mut self, task: TaskId, now: Instant) {
        let Some(charge) = self.tasks.get_mut(&task) else {
            return;
        };
        if let Some(held) = charge.held {
            charge.counted += held.period();
            self.spend(task, held.period(), now);
        }
    }

    fn spend(&mut self, task: TaskId, used: Span, now: Instant) {
        let Some(person) = self.person(task).map(Arc::clone) else {
            return;
        };
        let quotas: Vec<(Whose, Quota)> = self.quotas_of(&person).collect();
        for (whose, quota) in quotas {
            let full = Spending::new(quota.bandwidth, now);
            let spending = self.spending.entry(whose).or_insert(full);
            if spending.spend(used, quota.bandwidth, now) {
                self.reconsider(whose);
            }
        }
    }

    fn reconsider(&mut self, whose: Whose) {
        let held = self.tasks.iter().filter(|(_, charge)| {
            let is_theirs = match whose {
                Whose::User(uid) => charge.person.uid == uid,
                Whose::Group(gid) => charge.person.groups.contains(&gid),
            };
            is_theirs && charge.held.is_some()
        });
        self.to_reconsider.extend(held.map(|(task, _)| *task));
    }

    /// Time has passed: who has stayed within the quotas meanwhile may have soft reservations again.
    pub fn refill(&mut self, now: Instant) {
        let whose: Vec<Whose> = self.spending.keys().copied().collect();
        for whose in whose {
            let quota = match whose {
                Whose::User(uid) => self.quotas.of_user(uid),
                Whose::Group(gid) => self.quotas.groups.get(&gid).copied(),
            };
            let spending = self.spending.get_mut(&whose).zip(quota);
            let Some((spending, quota)) = spending else {
                self.spending.remove(&whose);
                self.reconsider(whose);
                continue;
            };
            let changed = spending.spend(Span::ZERO, quota.bandwidth, now);
            if spending.is_full(quota.bandwidth) {
                self.spending.remove(&whose);
            }
            if changed {
                self.reconsider(whose);
            }
        }
    }

    /// Whether `reservation` is to be a ceiling for `task`, of which is known whether the sensor `hears` it. That
    /// of a user under a quota is one if the user has used more than the quota gives, or if that would be
    /// noticed late: the task is not heard, or the period is long.
    #[must_use]
    pub fn is_ceiling(&self, task: TaskId, reservation: Reservation, hears: bool) -> bool {
        let Some(charge) = self.tasks.get(&task) else {
            return false;
        };
        self.quotas_of(&charge.person).any(|(whose, _)| {
            !hears
                || reservation.period() > LONGEST_SOFT_PERIOD
                || self.spending.get(&whose).is_some_and(Spending::is_over)
        })
    }

    /// The reservations that may have become ceilings since this was last called, or may no longer be.
    pub fn take_to_reconsider(&mut self) -> Vec<(TaskId, Reservation)> {
        let tasks = std::mem::take(&mut self.to_reconsider);
        let held = |task| Some((task, self.tasks.get(&task)?.held?));
        tasks.into_iter().filter_map(held).collect()
    }

    /// The tasks that are here only for what the kernel holds for them yet.
    pub fn unsettled(&self) -> impl Iterator<Item = TaskId> + '_ {
        let unsettled = self.tasks.iter().filter(|(_, charge)| charge.reasons == 0);
        unsettled.map(|(task, _)| *task)
    }

    /// Whether `task` has a reservation from here: the kernel holds it, or what is left of it.
    #[must_use]
    pub fn holds(&self, task: TaskId) -> bool {
        self.tasks
            .get(&task)
            .is_some_and(|charge| charge.held.is_some())
    }

    /// Whose `task` is, if it is in the ledger.
    #[must_use]
    pub fn person(&self, task: TaskId) -> Option<&Arc<Person>> {
        self.tasks.get(&task).map(|charge| &charge.person)
    }

    /// What is charged to the user: bandwidth and tasks.
    #[must_use]
    pub fn charged_to(&self, uid: u32) -> (Bandwidth, u32) {
        let used = self.used(Whose::User(uid));
        (used.bandwidth, used.tasks)
    }

    /// How many tasks are in the ledger.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    fn quotas_of<'a>(&'a self, person: &'a Person) -> impl Iterator<Item = (Whose, Quota)> + 'a {
        let own = self
            .quotas
            .of_user(person.uid)
            .filter(|_| !person.is_exempt);
        let groups = person.groups.iter().filter(|_| !person.is_exempt);
        let shared =
            groups.filter_map(|gid| Some((Whose::Group(*gid), *self.quotas.groups.get(gid)?)));
        own.map(|quota| (Whose::User(person.uid), quota))
            .into_iter()
            .chain(shared)
    }

    fn used(&self, whose: Whose) -> Used {
        let used = match whose {
            Whose::User(uid) => self.users.get(&uid),
            Whose::Group(gid) => self.groups.get(&gid),
        };
        used.copied().unwrap_or_default()
    }

    /// Counts for the user and for every group of his, whether or not it has a quota today.
    fn count(&mut self, person: &Person, change: impl Fn(&mut Used)) {
        if person.is_exempt {
            return;
        }
        apply(&mut self.users, person.uid, &change);
        for &gid in &person.groups {
            apply(&mut self.groups, gid, &change);
        }
    }
}

/// Of whom nothing is charged any more, nothing is kept.
fn apply(all: &mut HashMap<u32, Used>, number: u32, change: &impl Fn(&mut Used)) {
    let used = all.entry(number).or_default();
    change(used);
    if *used == Used::default() {
        all.remove(&number);
    }
}

#[cfg(test)]
mod tests;
