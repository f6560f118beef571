//! The owner of a task, with the groups by which quotas go.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::hash::{DefaultHasher, Hash, Hasher};

use onbeat_model::Bandwidth;

/// The room for a user's entry in the database, in bytes. glibc's own is 1,024
/// (`_SC_GETPW_R_SIZE_MAX`), and a directory's may be longer.
const ENTRY_BYTES: usize = 16 * 1024;

/// The most that the tasks of one rule may reserve together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allotment {
    /// The rule, by a hash of its name.
    pub rule: u64,
    /// How much.
    pub bandwidth: Bandwidth,
}

/// A user, to whom tasks are charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// His number.
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
    #[must_use]
    pub fn look_up(uid: u32, groups: &[u32]) -> Self {
        let mut all: BTreeSet<u32> = groups.iter().copied().collect();
        all.extend(groups_of(uid, 64));
        Self {
            groups: all,
            ..Self::of_no_group(uid)
        }
    }

    /// The user `uid`, whose groups are not known.
    #[must_use]
    pub const fn of_no_group(uid: u32) -> Self {
        Self {
            uid,
            is_exempt: uid == 0,
            allotment: None,
            groups: BTreeSet::new(),
        }
    }

    /// The user `uid`, for tasks that an administrator's rule names.
    #[must_use]
    pub fn named_by_a_rule(uid: u32) -> Self {
        Self {
            is_exempt: true,
            ..Self::of_no_group(uid)
        }
    }

    /// The user `uid`, for reservations under the rule of this name.
    #[must_use]
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
    #[must_use]
    pub fn can_pay(&self) -> bool {
        self.is_exempt || self.allotment.is_some() || self.is_known()
    }

    /// Whether the database knows them, as far as the database alone was asked: it has every user
    /// in at least one group. One person may have thousands of other numbers (newuidmap), and would
    /// have as many quotas.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.is_root() || !self.groups.is_empty()
    }

    /// Whether he may do what he likes.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// Passes the database's entry of the user `uid` to `read`; none if it does not know him.
fn with_entry<T>(uid: u32, read: impl FnOnce(&libc::passwd) -> T) -> Option<T> {
    let mut buffer = vec![0_u8; ENTRY_BYTES];
    // SAFETY: all zeroes is a valid passwd, whose pointers are then null.
    let mut entry = unsafe { std::mem::zeroed::<libc::passwd>() };
    let mut found = std::ptr::null_mut();
    // SAFETY: `entry` and `found` are live, and `buffer` has the length that is told.
    let error = unsafe {
        libc::getpwuid_r(
            uid,
            &raw mut entry,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            &raw mut found,
        )
    };
    (error == 0 && !found.is_null()).then(|| read(&entry))
}

/// The most groups that Linux lets a process, and so a user, be in.
const NGROUPS_MAX: usize = 65_536;

/// The groups that the database has the user in; none if it does not know him. Room is made for
/// more than `room` if there are more.
fn groups_of(uid: u32, mut room: usize) -> Vec<u32> {
    let read = |entry: &libc::passwd, room: usize| {
        let mut groups = vec![0; room];
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the name is a string as long as the entry is there; `groups` has room for
        // `count`.
        let told = unsafe {
            libc::getgrouplist(
                entry.pw_name,
                entry.pw_gid,
                groups.as_mut_ptr(),
                &raw mut count,
            )
        };
        // -1 if there was too little room.
        let told = usize::try_from(told).ok()?;
        groups.truncate(told);
        Some(groups)
    };
    loop {
        match with_entry(uid, |entry| read(entry, room)) {
            None => return Vec::new(),
            Some(Some(groups)) => return groups,
            Some(None) if room >= NGROUPS_MAX => return Vec::new(),
            Some(None) => room = (2 * room).clamp(1, NGROUPS_MAX),
        }
    }
}

/// The number of the user called `name`, which may be a number itself.
#[must_use]
pub fn user_named(name: &str) -> Option<u32> {
    if let Ok(number) = name.parse() {
        return Some(number);
    }
    let name = CString::new(name).ok()?;
    // SAFETY: a live string; the entry is read at once, before any other call could replace it, by
    // the one thread that reads configuration.
    unsafe { libc::getpwnam(name.as_ptr()).as_ref() }.map(|entry| entry.pw_uid)
}

/// The number of the group called `name`, which may be a number itself.
#[must_use]
pub fn group_named(name: &str) -> Option<u32> {
    if let Ok(number) = name.parse() {
        return Some(number);
    }
    let name = CString::new(name).ok()?;
    // SAFETY: as for users.
    unsafe { libc::getgrnam(name.as_ptr()).as_ref() }.map(|entry| entry.gr_gid)
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

    #[test]
    fn a_number_that_the_database_does_not_know_has_no_account() {
        for (uid, has_one) in [(0, true), (5, true), (u32::MAX - 5, false)] {
            assert_eq!(Account::look_up(uid, &[]).is_known(), has_one, "{uid}");
        }
    }

    #[test]
    fn no_group_is_dropped_because_there_are_more_than_was_reckoned_with() {
        let all = groups_of(0, 1024);
        assert!(!all.is_empty());
        assert_eq!(groups_of(0, 0), all);
    }
}
