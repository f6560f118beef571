//! Others at work on this machine who change the scheduling of tasks: said once, and never fought.

use std::collections::{BTreeMap, BTreeSet};

use crate::person;
use crate::target::Status;

/// One of them.
#[derive(Debug)]
struct Other {
    name: &'static str,
    /// Whose it is, if it is one: anybody can give his program the name. None: each user has his
    /// own.
    users: Option<&'static [&'static str]>,
    /// How it is lived with.
    peace: &'static str,
}

const ROOT: Option<&[&str]> = Some(&["root"]);

/// What becomes of what those do that set nice levels and policies by rules.
const STAYS: &str =
    "what it changes on a task that is kept on the beat stays changed, and the task is left to it";

const OTHERS: [Other; 7] = [
    Other {
        name: "rtkit-daemon",
        users: Some(&["root", "rtkit"]),
        peace: "threads that it gives real-time priority are left to it; its own clients come here once it is gone",
    },
    Other {
        name: "ananicy",
        users: ROOT,
        peace: STAYS,
    },
    Other {
        name: "ananicy-cpp",
        users: ROOT,
        peace: STAYS,
    },
    Other {
        name: "system76-scheduler",
        users: ROOT,
        peace: STAYS,
    },
    Other {
        name: "scx_loader",
        users: ROOT,
        peace: "the scheduler that it loads decides about tasks without a reservation; those with one go before",
    },
    Other {
        name: "gamemoded",
        users: None,
        peace: "the nice level that it gives a task stays, and is in force whenever the task has no reservation",
    },
    Other {
        name: "uresourced",
        users: ROOT,
        peace: "it changes the weights of cgroups, which reservations do not depend on",
    },
];

/// Of a name, the kernel keeps so many bytes.
const COMM_BYTES: usize = 15;

impl Other {
    fn is(&self, status: &Status) -> bool {
        let comm = self.name.get(..COMM_BYTES).unwrap_or(self.name);
        let is_owner =
            |user: &&str| person::user_named(user).is_some_and(|uid| status.uid == Some(uid));
        status.name.to_text() == comm && self.users.is_none_or(|users| users.iter().any(is_owner))
    }
}

/// Those that are at work now, by the number of their process.
#[derive(Debug, Default)]
pub(super) struct Others {
    at_work: BTreeMap<u32, &'static str>,
    said: BTreeSet<&'static str>,
}

impl Others {
    /// Looks whether the process is one of them.
    pub(super) fn notice(&mut self, pid: u32, status: &Status) {
        let Some(other) = OTHERS.iter().find(|other| other.is(status)) else {
            return;
        };
        self.at_work.insert(pid, other.name);
        if self.said.insert(other.name) {
            tracing::warn!(
                "{} is at work on this machine, too: {}",
                other.name,
                other.peace
            );
        }
    }

    /// Of all processes, there are these.
    pub(super) fn forget_all_but(&mut self, pids: &BTreeSet<u32>) {
        self.at_work.retain(|pid, _| pids.contains(pid));
    }

    pub(super) fn names(&self) -> BTreeSet<&'static str> {
        self.at_work.values().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::Name;

    use super::*;

    fn process(name: &str, uid: u32) -> Status {
        Status {
            name: Name::from(name),
            process: 7,
            parent: 1,
            uid: Some(uid),
        }
    }

    #[test]
    fn who_only_has_the_name_is_none_of_them_and_who_ended_is_no_longer() {
        let mut others = Others::default();
        others.notice(1, &process("ananicy", 1000));
        others.notice(2, &process("sleep", 0));
        assert_eq!(others.names(), BTreeSet::new());
        others.notice(3, &process("ananicy", 0));
        others.notice(4, &process("gamemoded", 1000));
        others.notice(5, &process("system76-schedu", 0));
        others.notice(6, &process("scx_loader", 0));
        let names = ["ananicy", "gamemoded", "scx_loader", "system76-scheduler"];
        assert_eq!(others.names(), BTreeSet::from(names));
        others.forget_all_but(&BTreeSet::from([1, 2, 3]));
        assert_eq!(others.names(), BTreeSet::from(["ananicy"]));
    }
}
