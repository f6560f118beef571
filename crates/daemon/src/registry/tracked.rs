//! A tracked process or thread: its holders, who pays for it, and which of its threads are tracked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onbeat_control::Treatment;
use onbeat_model::{Follow, TaskId};

use crate::account::Account;

/// The holder of something.
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
    pub const fn rule(&self) -> Option<&Arc<str>> {
        match self {
            Self::Rule(name) => Some(name),
            _ => None,
        }
    }
}

/// One reason for which something is tracked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lease {
    pub holder: Holder,
    /// The task asked for: this, or a process from which it comes.
    pub asked_for: TaskId,
}

/// A process, or one thread, that is tracked.
#[derive(Clone, Debug)]
pub struct TrackedProcess {
    pub pid: u32,
    /// The process that started it, if it is tracked because that one, or an earlier one, has
    /// `children`.
    pub origin: Option<TaskId>,
    /// The thread that was asked for; the first one stands for the whole process.
    pub task: TaskId,
    pub whole: bool,
    pub account: Arc<Account>,
    /// Its owner; none of one that runs with the rights of two users.
    pub owner: Option<u32>,
    pub payers: BTreeMap<Holder, Arc<Account>>,
    /// Why it is tracked, and whether the processes that it starts are to be, too. Without a lease
    /// it is let go.
    pub leases: BTreeMap<Lease, Follow>,
    pub shares: Option<u32>,
    pub treatment: Treatment,
    /// Whether those of them that gave themselves a real-time priority get reservations, too.
    pub adopts: bool,
    pub threads: BTreeSet<TaskId>,
}

impl TrackedProcess {
    /// `task` of the process `pid`, the whole process if it is the first thread. Nobody wants it
    /// yet.
    pub fn new(pid: u32, task: TaskId, account: Arc<Account>, owner: Option<u32>) -> Self {
        Self {
            pid,
            origin: None,
            task,
            whole: task.tid == pid,
            account,
            owner,
            payers: BTreeMap::new(),
            leases: BTreeMap::new(),
            shares: None,
            treatment: Treatment::default(),
            adopts: false,
            threads: BTreeSet::new(),
        }
    }

    /// `holder` asks for this itself, and `payer` pays for it. Its earlier request stays.
    pub fn want(&mut self, holder: Holder, payer: &Arc<Account>, follow: Follow) {
        let asked_for = self.task;
        self.payers.insert(holder.clone(), Arc::clone(payer));
        let lease = Lease { holder, asked_for };
        let wanted = self.leases.entry(lease).or_insert(follow);
        if follow == Follow::Children {
            *wanted = follow;
        }
    }

    pub fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.leases.keys().map(|lease| &lease.holder)
    }

    pub fn wants_children(&self) -> bool {
        self.leases
            .values()
            .any(|&follow| follow == Follow::Children)
    }

    /// The payer for tasks under these of its leases: the present payer, if one of them is theirs.
    pub fn payer_of(&self, leases: &BTreeMap<Lease, Follow>) -> Arc<Account> {
        let payers = leases.keys();
        let mut payers = payers.filter_map(|lease| self.payers.get(&lease.holder));
        let is_his = payers.clone().any(|payer| *payer == self.account);
        let other = payers.next().filter(|_| !is_his);
        Arc::clone(other.unwrap_or(&self.account))
    }

    pub fn leases_of_children(&self) -> BTreeMap<Lease, Follow> {
        let theirs = self.leases.iter();
        let theirs = theirs.filter(|&(_, &follow)| follow == Follow::Children);
        theirs
            .map(|(lease, &follow)| (lease.clone(), follow))
            .collect()
    }
}
