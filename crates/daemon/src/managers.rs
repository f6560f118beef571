//! Other managers of scheduling on this machine: each is named in the journal once, and left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::account;
use crate::target::Status;

/// A manager that onbeat knows.
#[derive(Debug)]
struct Known {
    name: &'static str,
    /// Whose it is, if it is one: anybody can give his program the name. None: each user has his
    /// own.
    users: Option<&'static [&'static str]>,
    /// What onbeat does about what it changes.
    effect: &'static str,
    /// What keeps it from changing what onbeat changes; empty if nothing need.
    remedy: &'static str,
}

const ROOT: Option<&[&str]> = Some(&["root"]);

/// What becomes of what those do that set nice levels and policies by rules.
const STAYS: &str = "what it changes on a tracked task stays changed, and the task is left to it";

const KNOWN: [Known; 8] = [
    Known {
        name: "rtkit-daemon",
        users: Some(&["root", "rtkit"]),
        effect: "threads that it gives real-time priority are left to it; its own clients come here once it is gone",
        remedy: "",
    },
    Known {
        name: "ananicy",
        users: ROOT,
        effect: STAYS,
        remedy: "sudo systemctl disable --now ananicy",
    },
    Known {
        name: "ananicy-cpp",
        users: ROOT,
        effect: STAYS,
        remedy: "set apply_nice=false and apply_sched=false in /etc/ananicy.d/ananicy.conf, then: \
                 sudo systemctl restart ananicy-cpp",
    },
    Known {
        name: "system76-scheduler",
        users: ROOT,
        effect: STAYS,
        remedy: "write process-scheduler enable=false into /etc/system76-scheduler/config.kdl, then: \
                 sudo systemctl restart com.system76.Scheduler",
    },
    Known {
        name: "scx_loader",
        users: ROOT,
        effect: "the scheduler that it loads decides about tasks without a reservation; those with one go before",
        remedy: "",
    },
    Known {
        name: "gamemoded",
        users: None,
        effect: "the nice level that it gives a task stays, and is in force whenever the task has no reservation",
        remedy: "write renice=0 and softrealtime=off below [general] in /etc/gamemode.ini, then: \
                 systemctl --user restart gamemoded",
    },
    Known {
        name: "falcond",
        users: ROOT,
        effect: "the scheduler that it loads for a game decides about tasks without a reservation; those with one go before",
        remedy: "write scx_sched = none into /etc/falcond/config.conf, then: sudo systemctl restart falcond",
    },
    Known {
        name: "uresourced",
        users: ROOT,
        effect: "it changes the weights of cgroups, which reservations do not depend on",
        remedy: "",
    },
];

/// The bytes that the kernel keeps of a thread's name.
const COMM_BYTES: usize = 15;

impl Known {
    fn is(&self, status: &Status) -> bool {
        let comm = self.name.get(..COMM_BYTES).unwrap_or(self.name);
        let is_owner =
            |user: &&str| account::user_named(user).is_some_and(|uid| status.uid == Some(uid));
        status.name.to_text() == comm && self.users.is_none_or(|users| users.iter().any(is_owner))
    }
}

/// Another manager of scheduling that runs on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Its name.
    pub name: &'static str,
    /// What it does to tasks with reservations, and what onbeat does then.
    pub effect: &'static str,
    /// The line that keeps it from doing so; empty if nothing need be done.
    pub remedy: &'static str,
}

/// The known managers that run now, each once.
#[must_use]
pub fn managers() -> Vec<Manager> {
    let statuses = processes();
    let statuses: Vec<Status> = statuses.into_iter().filter_map(Status::read).collect();
    let runs = |known: &&Known| statuses.iter().any(|status| known.is(status));
    let managers = KNOWN.iter().filter(runs);
    let managers = managers.map(|known| Manager {
        name: known.name,
        effect: known.effect,
        remedy: known.remedy,
    });
    managers.collect()
}

/// The processes that there are.
pub(crate) fn processes() -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Those that are at work now, by the number of their process.
#[derive(Debug, Default)]
pub(crate) struct Managers {
    at_work: BTreeMap<u32, &'static str>,
    said: BTreeSet<&'static str>,
}

impl Managers {
    /// Notes the process if it is one of them.
    pub(crate) fn notice(&mut self, pid: u32, status: &Status) {
        let Some(known) = KNOWN.iter().find(|known| known.is(status)) else {
            return;
        };
        self.at_work.insert(pid, known.name);
        if self.said.insert(known.name) {
            tracing::warn!(
                "{} is at work on this machine, too: {}",
                known.name,
                known.effect
            );
        }
    }

    /// Forgets the managers whose process is not among these.
    pub(crate) fn forget_all_but(&mut self, pids: &BTreeSet<u32>) {
        self.at_work.retain(|pid, _| pids.contains(pid));
    }

    pub(crate) fn names(&self) -> BTreeSet<&'static str> {
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
        let mut managers = Managers::default();
        managers.notice(1, &process("ananicy", 1000));
        managers.notice(2, &process("sleep", 0));
        assert_eq!(managers.names(), BTreeSet::new());
        managers.notice(3, &process("ananicy", 0));
        managers.notice(4, &process("gamemoded", 1000));
        managers.notice(5, &process("system76-schedu", 0));
        managers.notice(6, &process("scx_loader", 0));
        let names = ["ananicy", "gamemoded", "scx_loader", "system76-scheduler"];
        assert_eq!(managers.names(), BTreeSet::from(names));
        managers.forget_all_but(&BTreeSet::from([1, 2, 3]));
        assert_eq!(managers.names(), BTreeSet::from(["ananicy"]));
    }
}
