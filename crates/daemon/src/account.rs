//! The owner of a task, with the groups by which quotas go.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::hash::{DefaultHasher, Hash, Hasher};

use nix::unistd::{Group, User, getgrouplist};
use onbeat_model::Bandwidth;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allotment {
    /// The rule, by a hash of its name.
    pub rule: u64,
    pub bandwidth: Bandwidth,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub uid: u32,
    /// Charges here count for no quota but the total: it is root's, or an administrator's rule
    /// names it.
    pub is_exempt: bool,
    /// A rule's own account, which is charged in place of the user's.
    pub allotment: Option<Allotment>,
    /// The groups he is in: by the database, and those that his process had.
    pub groups: BTreeSet<u32>,
}

impl Account {
    /// The user `uid`, whose process is in `groups`. The database's groups are his, too: a process
    /// that left one is still the same account's.
    pub fn look_up(uid: u32, groups: &[u32]) -> Self {
        let mut all: BTreeSet<u32> = groups.iter().copied().collect();
        all.extend(groups_of(uid));
        Self {
            groups: all,
            ..Self::of_no_group(uid)
        }
    }

    pub const fn of_no_group(uid: u32) -> Self {
        Self {
            uid,
            is_exempt: uid == 0,
            allotment: None,
            groups: BTreeSet::new(),
        }
    }

    pub fn named_by_a_rule(uid: u32) -> Self {
        Self {
            is_exempt: true,
            ..Self::of_no_group(uid)
        }
    }

    pub fn under_a_rule(uid: u32, rule: &str, bandwidth: Bandwidth) -> Self {
        let mut hasher = DefaultHasher::new();
        rule.hash(&mut hasher);
        let rule = hasher.finish();
        Self {
            is_exempt: false,
            allotment: Some(Allotment { rule, bandwidth }),
            ..Self::of_no_group(uid)
        }
    }

    /// Whether something may be charged here: to a rule, to root, or to a user with an account.
    pub fn can_pay(&self) -> bool {
        self.is_exempt || self.allotment.is_some() || self.is_known()
    }

    /// Whether the database knows them, as far as the database alone was asked: it has every user
    /// in at least one group. One person may have thousands of other numbers (newuidmap), and would
    /// have as many quotas.
    pub fn is_known(&self) -> bool {
        self.is_root() || !self.groups.is_empty()
    }

    pub const fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// The groups that the database has the user in; none if it does not know him.
fn groups_of(uid: u32) -> Vec<u32> {
    let user = User::from_uid(uid.into()).ok().flatten();
    let groups = user.and_then(|user| {
        let name = CString::new(user.name).ok()?;
        getgrouplist(&name, user.gid).ok()
    });
    groups
        .iter()
        .flatten()
        .map(|group| group.as_raw())
        .collect()
}

/// The number of the user called `name`, which may be a number itself.
pub fn user_named(name: &str) -> Option<u32> {
    let by_name = || Some(User::from_name(name).ok()??.uid.as_raw());
    name.parse().ok().or_else(by_name)
}

/// The number of the group called `name`, which may be a number itself.
pub fn group_named(name: &str) -> Option<u32> {
    let by_name = || Some(Group::from_name(name).ok()??.gid.as_raw());
    name.parse().ok().or_else(by_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_in_the_databases_groups_whatever_his_process_says() {
        let account = Account::look_up(0, &[4711]);
        assert!(account.groups.contains(&0));
        assert!(account.groups.contains(&4711));
        assert!(Account::look_up(u32::MAX - 5, &[]).groups.is_empty());
    }
}
