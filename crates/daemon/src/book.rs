//! Who wants what kept on the beat, and what is charged to whom: what sensor, actuator and the service's
//! requests have to agree on. Used by the loop's thread alone.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use onbeat_control::Treatment;
use onbeat_model::{Task, TaskId};

use crate::person::Person;
use crate::quota::{Ledger, Objection};

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

/// A process, or one thread, that is kept on the beat.
#[derive(Clone, Debug)]
pub struct Root {
    /// Its number.
    pub pid: u32,
    /// What it comes from, if it is kept because a process with `children` started it, or one of those did.
    pub origin: Option<TaskId>,
    /// The thread that was asked for; the first one stands for the whole process.
    pub task: TaskId,
    /// Whether it is the whole process.
    pub whole: bool,
    /// Whether the processes that it starts are kept on the beat, too.
    pub children: bool,
    /// To whom its threads are charged.
    pub person: Arc<Person>,
    /// Who wants it. Nobody: it is let go.
    pub holders: BTreeSet<Holder>,
    /// How its threads are treated.
    pub treatment: Treatment,
    /// Its threads that are tracked.
    pub threads: BTreeSet<TaskId>,
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
    /// Threads that were not tracked, because it was one too many for their owner.
    pub turned_away: u64,
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

    /// How a thread is treated.
    #[must_use]
    pub fn treatment(&self, task: &Task) -> Treatment {
        let root = self.roots.values().find(|root| root.pid == task.pid);
        root.map(|root| root.treatment).unwrap_or_default()
    }

    /// The thread is gone.
    pub fn ended(&mut self, task: TaskId) {
        self.ledger.remove(task);
        self.grants.remove(&task);
        self.raised.remove(&task);
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
            if root.holders.remove(holder) && root.holders.is_empty() {
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

    /// How many holders want something.
    #[must_use]
    pub fn holders(&self) -> usize {
        let roots = self.roots.values().flat_map(|root| &root.holders);
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
