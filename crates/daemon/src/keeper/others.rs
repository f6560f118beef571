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
    /// What keeps it from changing what onbeat changes; empty if nothing need.
    remedy: &'static str,
}

const ROOT: Option<&[&str]> = Some(&["root"]);

/// What becomes of what those do that set nice levels and policies by rules.
const STAYS: &str =
    "what it changes on a task that is kept on the beat stays changed, and the task is left to it";

const OTHERS: [Other; 8] = [
    Other {
        name: "rtkit-daemon",
        users: Some(&["root", "rtkit"]),
        peace: "threads that it gives real-time priority are left to it; its own clients come here once it is gone",
        remedy: "",
    },
    Other {
        name: "ananicy",
        users: ROOT,
        peace: STAYS,
        remedy: "sudo systemctl disable --now ananicy",
    },
    Other {
        name: "ananicy-cpp",
        users: ROOT,
        peace: STAYS,
        remedy: "set apply_nice=false and apply_sched=false in /etc/ananicy.d/ananicy.conf, then: \
                 sudo systemctl restart ananicy-cpp",
    },
    Other {
        name: "system76-scheduler",
        users: ROOT,
        peace: STAYS,
        remedy: "write process-scheduler enable=false into /etc/system76-scheduler/config.kdl, then: \
                 sudo systemctl restart com.system76.Scheduler",
    },
    Other {
        name: "scx_loader",
        users: ROOT,
        peace: "the scheduler that it loads decides about tasks without a reservation; those with one go before",
        remedy: "",
    },
    Other {
        name: "gamemoded",
        users: None,
        peace: "the nice level that it gives a task stays, and is in force whenever the task has no reservation",
        remedy: "write renice=0 and softrealtime=off below [general] in /etc/gamemode.ini, then: \
                 systemctl --user restart gamemoded",
    },
    Other {
        name: "falcond",
        users: ROOT,
        peace: "the scheduler that it loads for a game decides about tasks without a reservation; those with one go before",
        remedy: "write scx_sched = none into /etc/falcond/config.conf, then: sudo systemctl restart falcond",
    },
    Other {
        name: "uresourced",
        users: ROOT,
        peace: "it changes the weights of cgroups, which reservations do not depend on",
        remedy: "",
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

/// Another manager of scheduling that runs on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Its name.
    pub name: &'static str,
    /// What it does to tasks with reservations, and what onbeat does then.
    pub peace: &'static str,
    /// The line that keeps it from doing so; empty if nothing need be done.
    pub remedy: &'static str,
}

/// The other managers that run now, each once.
#[must_use]
pub fn managers() -> Vec<Manager> {
    let statuses = super::scanning::processes();
    let statuses: Vec<Status> = statuses.into_iter().filter_map(Status::read).collect();
    let runs = |other: &&Other| statuses.iter().any(|status| other.is(status));
    let managers = OTHERS.iter().filter(runs);
    let managers = managers.map(|other| Manager {
        name: other.name,
        peace: other.peace,
        remedy: other.remedy,
    });
    managers.collect()
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
