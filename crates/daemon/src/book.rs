//! Who wants what kept on the beat, and what is charged to whom: what sensor, actuator and the
//! service's requests have to agree on. Used by the loop's thread alone.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use onbeat_control::Treatment;
use onbeat_model::{Follow, Reservation, Task, TaskId};

use crate::person::Person;
use crate::quota::{Ledger, Objection};
use partners::Partners;
pub use partners::{LeftOut, Partner};

mod partners;

/// The one book, in the hands of all who need it.
pub type Shared = Rc<RefCell<Book>>;

/// Who wants something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// A connection to the bus, by its unique name: until it is gone.
    Client(Arc<str>),
    /// A rule of the configuration, by its name: until it is changed.
    Rule(Arc<str>),
    /// A client of RealtimeKit: for the rest of the thread's life, as it was there.
    RealtimeKit,
}

impl Holder {
    /// The rule's name, if it is one.
    #[must_use]
    pub const fn rule(&self) -> Option<&Arc<str>> {
        match self {
            Self::Rule(name) => Some(name),
            _ => None,
        }
    }
}

/// One reason for which something is kept on the beat.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wish {
    /// Who wants it.
    pub holder: Holder,
    /// What he asked for: this, or a process from which it comes.
    pub asked_for: TaskId,
}

/// A process, or one thread, that is kept on the beat.
#[derive(Clone, Debug)]
pub struct Root {
    /// Its number.
    pub pid: u32,
    /// What it comes from, if it is kept because a process with `children` started it, or one of
    /// those did.
    pub origin: Option<TaskId>,
    /// The thread that was asked for; the first one stands for the whole process.
    pub task: TaskId,
    /// Whether it is the whole process.
    pub whole: bool,
    /// To whom its threads are charged.
    pub person: Arc<Person>,
    /// Whose it is; none of one that runs with the rights of two users.
    pub owner: Option<u32>,
    /// Who pays for what each of those who want it wants.
    pub payers: BTreeMap<Holder, Arc<Person>>,
    /// Why it is kept, and whether the processes that it starts are to be, too. For no reason any
    /// more: it is let go.
    pub wishes: BTreeMap<Wish, Follow>,
    /// How its threads are treated.
    pub treatment: Treatment,
    /// Whether those of them that gave themselves a real-time priority get reservations, too.
    pub adopts: bool,
    /// Its threads that are tracked.
    pub threads: BTreeSet<TaskId>,
}

impl Root {
    /// `holder` asks for this itself, and `payer` pays for it. What he wanted before stays.
    pub fn want(&mut self, holder: Holder, payer: &Arc<Person>, follow: Follow) {
        let asked_for = self.task;
        self.payers.insert(holder.clone(), Arc::clone(payer));
        let wish = Wish { holder, asked_for };
        let wanted = self.wishes.entry(wish).or_insert(follow);
        if follow == Follow::Children {
            *wanted = follow;
        }
    }

    /// Who wants it.
    pub fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.wishes.keys().map(|wish| &wish.holder)
    }

    /// Whether anybody wants the processes that it starts, too.
    #[must_use]
    pub fn wants_children(&self) -> bool {
        self.wishes
            .values()
            .any(|&follow| follow == Follow::Children)
    }

    /// Who pays for what comes under these of its wishes: whoever pays now, if one of them is his.
    #[must_use]
    pub fn payer_of(&self, wishes: &BTreeMap<Wish, Follow>) -> Arc<Person> {
        let payers = wishes.keys();
        let mut payers = payers.filter_map(|wish| self.payers.get(&wish.holder));
        let is_his = payers.clone().any(|payer| *payer == self.person);
        let other = payers.next().filter(|_| !is_his);
        Arc::clone(other.unwrap_or(&self.person))
    }

    /// The wishes that the processes that it starts come under.
    #[must_use]
    pub fn wishes_of_children(&self) -> BTreeMap<Wish, Follow> {
        let theirs = self.wishes.iter();
        let theirs = theirs.filter(|&(_, &follow)| follow == Follow::Children);
        theirs
            .map(|(wish, &follow)| (wish.clone(), follow))
            .collect()
    }
}

/// A reservation that was asked for.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Who holds it.
    pub holder: Holder,
    /// The thread.
    pub task: Task,
    /// Whose it was when it was asked for.
    pub uid: u32,
}

/// See the file's head.
#[derive(Debug, Default)]
pub struct Book {
    /// What is charged to whom.
    pub ledger: Ledger,
    /// What is kept on the beat, by the thread that was asked for.
    pub roots: BTreeMap<TaskId, Root>,
    /// Reservations that were asked for, by thread.
    pub grants: BTreeMap<TaskId, Grant>,
    /// Threads that have a real-time priority from here.
    pub raised: BTreeSet<TaskId>,
    /// Processes in which another user's program runs now: to be let go.
    pub changed_hands: BTreeSet<u32>,
    /// Events were lost: of what is kept on the beat, threads may have started that are not
    /// tracked.
    pub missed_some: bool,
    /// Threads that were not tracked, because it was one too many for their owner.
    pub turned_away: u64,
    /// Threads that nobody asked for, that may work for those that were.
    pub partners: Partners,
    /// Tasks to which somebody gave another nice level under their reservations: to be told.
    pub reniced: Vec<Reniced>,
}

/// A task that somebody else gave another nice level while it had a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reniced {
    /// The task.
    pub task: TaskId,
    /// Its nice level until then.
    pub before: i32,
    /// The other one.
    pub now: i32,
}

impl Book {
    /// A book with this ledger, and nothing else in it.
    #[must_use]
    pub fn new(ledger: Ledger) -> Self {
        Self {
            ledger,
            ..Self::default()
        }
    }

    /// A thread came to be tracked: to whom it is charged, if anybody asked for it and may have it.
    ///
    /// # Errors
    /// If it is one too many, or nobody asked for it.
    pub fn admit(&mut self, task: &Task) -> Result<(), Objection> {
        if self.partners.all.contains_key(&task.id) {
            return Ok(());
        }
        let of_process = |root: &&mut Root| root.pid == task.pid && root.whole;
        let by_itself = |root: &&mut Root| root.pid == task.pid;
        let found = match self.roots.values_mut().find(of_process) {
            None => self.roots.values_mut().find(by_itself),
            found => found,
        };
        let Some(root) = found else {
            return Err(Objection::Unknown);
        };
        if root.threads.contains(&task.id) {
            return Ok(());
        }
        if let Err(objection) = self.ledger.enter(task.id, &root.person) {
            self.turned_away += 1;
            return Err(objection);
        }
        root.threads.insert(task.id);
        Ok(())
    }

    /// Whether `reservation` is to be a ceiling for `task`, too.
    #[must_use]
    pub fn is_ceiling(&self, task: TaskId, reservation: Reservation) -> bool {
        // A thread that holds just what was asked for is heard only if it is tracked as well.
        let hears = !self.grants.contains_key(&task)
            || (self.roots.values()).any(|root| root.threads.contains(&task));
        self.ledger.is_ceiling(task, reservation, hears)
    }

    /// How a thread is treated.
    #[must_use]
    pub fn treatment(&self, task: &Task) -> Treatment {
        let mut roots = self.roots.values();
        let root = roots.find(|root| root.pid == task.pid);
        root.map(|root| root.treatment).unwrap_or_default()
    }

    /// Whether the thread gets a reservation although it gave itself a real-time priority.
    #[must_use]
    pub fn adopts(&self, task: TaskId) -> bool {
        let mut roots = self.roots.values();
        roots.any(|root| root.adopts && root.threads.contains(&task))
    }

    /// The thread is gone.
    pub fn ended(&mut self, task: TaskId) {
        self.ledger.remove(task);
        self.grants.remove(&task);
        self.raised.remove(&task);
        self.partners.all.remove(&task);
        self.partners.in_doubt = true;
        for root in self.roots.values_mut() {
            root.threads.remove(&task);
        }
        // A process whose first thread has ended may go on without it.
        self.roots
            .retain(|id, root| *id != task || (root.whole && !root.threads.is_empty()));
    }

    /// `holder` no longer wants anything: what nobody else wants either.
    pub fn drop_holder(&mut self, holder: &Holder) -> Dropped {
        let mut dropped = Dropped::default();
        for (id, root) in &mut self.roots {
            root.wishes.retain(|wish, _| wish.holder != *holder);
            if root.wishes.is_empty() {
                dropped.roots.push(*id);
            }
        }
        let held = self
            .grants
            .iter()
            .filter(|(_, grant)| grant.holder == *holder);
        dropped.grants.extend(held.map(|(id, _)| *id));
        dropped
    }

    /// `holder` no longer wants `task`, nor what he has because he asked for it: what nobody else
    /// wants either, and he did not ask for by itself. None if he does not want it anyway.
    pub fn drop_wish(&mut self, holder: &Holder, task: TaskId) -> Option<Vec<TaskId>> {
        let root = self.roots.get(&task)?;
        root.holders().find(|own| *own == holder)?;
        for (id, root) in &mut self.roots {
            root.wishes.retain(|wish, _| {
                wish.holder != *holder || (wish.asked_for != task && *id != task)
            });
        }
        let unwanted = self.roots.iter().filter(|(_, root)| root.wishes.is_empty());
        Some(unwanted.map(|(id, _)| *id).collect())
    }

    /// Takes `root` out; its threads of which nothing else is kept on the beat. The others are
    /// charged as before.
    pub fn take_out(&mut self, root: TaskId) -> Vec<TaskId> {
        let Some(root) = self.roots.remove(&root) else {
            return Vec::new();
        };
        self.partners.in_doubt = true;
        let mut gone = Vec::new();
        for thread in root.threads {
            let mut others = self.roots.values_mut();
            let other =
                others.find(|other| other.pid == root.pid && (other.whole || other.task == thread));
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

    /// Who paid for something may want it no longer, while somebody else does: that one pays from
    /// here on. Answers the threads that he may not have, which belong to nothing any more.
    pub fn settle_payers(&mut self) -> Vec<TaskId> {
        let mut beyond = Vec::new();
        let mut passed_on = Vec::new();
        for (id, root) in &mut self.roots {
            let wishes = &root.wishes;
            let wants = |holder: &Holder| wishes.keys().any(|wish| wish.holder == *holder);
            root.payers.retain(|holder, _| wants(holder));
            let payer = root.payer_of(&root.wishes);
            if payer != root.person {
                passed_on.push((*id, payer));
            }
        }
        for (id, payer) in passed_on {
            let Some(root) = self.roots.get_mut(&id) else {
                continue;
            };
            let former = std::mem::replace(&mut root.person, Arc::clone(&payer));
            let threads: Vec<TaskId> = root.threads.iter().copied().collect();
            for thread in threads {
                let mut others = self.roots.values();
                let is_paid = others.any(|other| {
                    other.task != id && other.person == former && other.threads.contains(&thread)
                });
                // Who reserved for it himself pays for it himself.
                if is_paid || self.grants.contains_key(&thread) {
                    continue;
                }
                if self.ledger.hand_over(thread, &payer).is_err() {
                    beyond.push(thread);
                }
            }
        }
        self.partners.in_doubt |= !beyond.is_empty();
        for root in self.roots.values_mut() {
            root.threads.retain(|thread| !beyond.contains(thread));
        }
        beyond
    }

    /// How many holders want something.
    #[must_use]
    pub fn holders(&self) -> usize {
        let roots = self.roots.values().flat_map(Root::holders);
        let grants = self.grants.values().map(|grant| &grant.holder);
        roots.chain(grants).collect::<BTreeSet<_>>().len()
    }
}

/// What is to be let go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// No longer kept on the beat.
    pub roots: Vec<TaskId>,
    /// Reservations to be given back.
    pub grants: Vec<TaskId>,
}

#[cfg(test)]
mod tests;
