//! Other managers of scheduling on this machine: each is named in the journal once, and left alone.

use std::collections::BTreeSet;

use onbeat_model::Name;

use crate::account;
use crate::target::Status;

/// A manager that onbeat knows.
#[derive(Debug)]
struct KnownManager {
    name: &'static str,
    users: Users,
    /// onbeat's reaction to its changes.
    effect: &'static str,
    /// The setting that keeps it from changing onbeat's tasks; empty if nothing need.
    remedy: &'static str,
}

/// The users whose process of its name is the manager: every user can give a program that name.
#[derive(Clone, Copy, Debug)]
enum Users {
    Root,
    /// And the user `rtkit`.
    RootAndRtkit,
    All,
}

/// The fate of changes by programs that set nice levels and policies by rules.
const STAYS: &str = "what it changes on a tracked task stays changed, and the task is left to it";

const KNOWN: [KnownManager; 8] = [
    KnownManager {
        name: "rtkit-daemon",
        users: Users::RootAndRtkit,
        effect: "threads that it gives real-time priority are left to it; its own clients come here once it is gone",
        remedy: "",
    },
    KnownManager {
        name: "ananicy",
        users: Users::Root,
        effect: STAYS,
        remedy: "sudo systemctl disable --now ananicy",
    },
    KnownManager {
        name: "ananicy-cpp",
        users: Users::Root,
        effect: STAYS,
        remedy: "set apply_nice=false and apply_sched=false in /etc/ananicy.d/ananicy.conf, then: \
                 sudo systemctl restart ananicy-cpp",
    },
    KnownManager {
        name: "system76-scheduler",
        users: Users::Root,
        effect: STAYS,
        remedy: "write process-scheduler enable=false into /etc/system76-scheduler/config.kdl, then: \
                 sudo systemctl restart com.system76.Scheduler",
    },
    KnownManager {
        name: "scx_loader",
        users: Users::Root,
        effect: "the scheduler that it loads decides about tasks without a reservation; those with one go before",
        remedy: "",
    },
    KnownManager {
        name: "gamemoded",
        users: Users::All,
        effect: "the nice level that it gives a task stays, and is in force whenever the task has no reservation",
        remedy: "write renice=0 and softrealtime=off below [general] in /etc/gamemode.ini, then: \
                 systemctl --user restart gamemoded",
    },
    KnownManager {
        name: "falcond",
        users: Users::Root,
        effect: "the scheduler that it loads for a game decides about tasks without a reservation; those with one go before",
        remedy: "write scx_sched = none into /etc/falcond/config.conf, then: sudo systemctl restart falcond",
    },
    KnownManager {
        name: "uresourced",
        users: Users::Root,
        effect: "it changes the weights of cgroups, which reservations do not depend on",
        remedy: "",
    },
];

/// The user that RealtimeKit runs as.
pub(crate) const RTKIT: &str = "rtkit";

/// The bytes that the kernel keeps of a thread's name.
const COMM_BYTES: usize = 15;

impl KnownManager {
    fn comm(&self) -> &'static str {
        self.name.get(..COMM_BYTES).unwrap_or(self.name)
    }

    /// `rtkit` is the number of the user of that name, if there is one.
    fn is(&self, comm: Name, uid: Option<u32>, rtkit: Option<u32>) -> bool {
        let is_owner = match self.users {
            Users::All => true,
            Users::Root => uid == Some(0),
            Users::RootAndRtkit => uid == Some(0) || (rtkit.is_some() && uid == rtkit),
        };
        is_owner && comm.to_text() == self.comm()
    }
}

/// Another manager of scheduling that runs on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manager {
    pub name: &'static str,
    /// Its effect on tasks with reservations, and onbeat's reaction.
    pub effect: &'static str,
    /// The line that keeps it from doing so; empty if nothing need be done.
    pub remedy: &'static str,
}

/// The known managers that run now, each once.
#[must_use]
pub fn managers() -> Vec<Manager> {
    let statuses = onbeat_act::task::processes();
    let statuses: Vec<Status> = statuses.into_iter().filter_map(Status::read).collect();
    let rtkit = account::user_named(RTKIT);
    let runs = |known: &&KnownManager| {
        let mut statuses = statuses.iter();
        statuses.any(|status| known.is(status.name, status.uid, rtkit))
    };
    let managers = KNOWN.iter().filter(runs);
    let managers = managers.map(|known| Manager {
        name: known.name,
        effect: known.effect,
        remedy: known.remedy,
    });
    managers.collect()
}

/// The names of their processes, as the kernel keeps them.
pub(crate) fn names() -> impl Iterator<Item = String> {
    KNOWN.iter().map(|known| known.comm().to_owned())
}

/// Those that are at work now.
#[derive(Debug, Default)]
pub(crate) struct Managers {
    at_work: BTreeSet<&'static str>,
    said: BTreeSet<&'static str>,
}

impl Managers {
    /// From here on, all processes are gone through.
    pub(crate) fn begin(&mut self) {
        self.at_work.clear();
    }

    /// Notes the process if it is one of them. `rtkit` is the number of the user of that name, as
    /// far as it is known: the loop, which calls this, does not wait for a database of users.
    pub(crate) fn notice(&mut self, comm: Name, uid: u32, rtkit: Option<u32>) {
        let Some(known) = KNOWN.iter().find(|known| known.is(comm, Some(uid), rtkit)) else {
            return;
        };
        self.at_work.insert(known.name);
        if self.said.insert(known.name) {
            tracing::warn!(
                "{} is at work on this machine, too: {}",
                known.name,
                known.effect
            );
        }
    }

    pub(crate) fn names(&self) -> BTreeSet<&'static str> {
        self.at_work.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_has_the_name_is_none_of_them_and_who_ended_is_no_longer() {
        let mut managers = Managers::default();
        managers.notice(Name::from("ananicy"), 1000, None);
        managers.notice(Name::from("sleep"), 0, None);
        assert_eq!(managers.names(), BTreeSet::new());
        managers.notice(Name::from("ananicy"), 0, None);
        managers.notice(Name::from("gamemoded"), 1000, None);
        managers.notice(Name::from("system76-schedu"), 0, None);
        managers.notice(Name::from("scx_loader"), 0, None);
        let names = ["ananicy", "gamemoded", "scx_loader", "system76-scheduler"];
        assert_eq!(managers.names(), BTreeSet::from(names));
        managers.begin();
        managers.notice(Name::from("ananicy"), 0, None);
        assert_eq!(managers.names(), BTreeSet::from(["ananicy"]));
    }

    #[test]
    fn realtimekit_is_one_by_the_number_of_its_user_that_was_looked_up_before() {
        let names = |uid, rtkit| {
            let mut managers = Managers::default();
            managers.notice(Name::from("rtkit-daemon"), uid, rtkit);
            managers.names().len()
        };
        assert_eq!(names(0, None), 1);
        // A number that no database has a name for.
        let rtkit = 4_000_000_000;
        assert_eq!(names(rtkit, Some(rtkit)), 1);
        assert_eq!(names(rtkit, None), 0);
        assert_eq!(names(1000, Some(rtkit)), 0);
    }
}
