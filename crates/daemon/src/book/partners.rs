//! Threads that nobody asked for, and that are tracked because they may work for one that somebody
//! did ask for: whose they may be, and who pays.
//!
//! A partner is of the same user as the task that it works for, whoever asked for that one, and is
//! charged to whoever that one is charged to. When that one goes and it works for others, it is
//! theirs from then on.

use std::collections::BTreeMap;
use std::sync::Arc;

use onbeat_control::Party;
use onbeat_model::{Task, TaskId};

use super::Book;
use crate::directory;
use crate::person::Person;
use crate::quota::Objection;

/// The partners, and what is to be done about them.
#[derive(Debug, Default)]
pub struct Partners {
    /// Each, by thread.
    pub all: BTreeMap<TaskId, Partner>,
    /// Threads that work for one that is kept on the beat, and are not kept with it: to be told.
    pub left_out: Vec<LeftOut>,
    /// Threads that are tracked for another one no longer: to be dropped once what became of them
    /// was told.
    pub dismissed: Vec<TaskId>,
    /// Something is tracked no longer: perhaps it was what one of them worked for.
    pub in_doubt: bool,
}

/// A thread that nobody asked for.
#[derive(Clone, Debug)]
pub struct Partner {
    /// The number of its process.
    pub pid: u32,
    /// Whose it is.
    pub owner: u32,
    /// The tracked thread for which it is charged.
    pub of: TaskId,
    /// To whom.
    pub person: Arc<Person>,
}

/// A thread that is not kept on the beat with the one that it works for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its number.
    pub tid: u32,
    /// The thread that it works for.
    pub of: TaskId,
    /// To whom that one is charged.
    pub payer: u32,
    /// Why not, if that is worth telling.
    pub why: Option<String>,
}

impl Book {
    /// The thread `task` of the user `uid` may work for the tracked thread `of`, and is to be
    /// tracked for that: it is charged to whoever that one is charged to. A rule that frees `of` of
    /// quotas does not mean who comes to work with it: that is charged to its user.
    ///
    /// # Errors
    /// Why not, if that is worth telling: it is somebody else's, or one too many. Else it is
    /// tracked already, or nobody asked for `of`.
    pub fn admit_partner(
        &mut self,
        task: &Task,
        uid: u32,
        of: TaskId,
    ) -> Result<(), Option<String>> {
        let Some((owner, person)) = self.behind(of) else {
            return Err(None);
        };
        if owner != Some(uid) {
            let whose = match owner {
                Some(owner) if owner == person.uid => "it is not yours".to_owned(),
                Some(owner) => format!("it is not user {owner}'s, as that one is"),
                None => "that one runs with the rights of more than one user".to_owned(),
            };
            return Err(Some(format!("{whose}, but of user {uid}")));
        }
        let mut roots = self.roots.values();
        let is_known = roots.any(|root| root.threads.contains(&task.id));
        if is_known || self.partners.all.contains_key(&task.id) {
            return Err(None);
        }
        let entered = self.ledger.enter(task.id, &person);
        entered.map_err(|objection| Some(objection.to_string()))?;
        let partner = Partner {
            pid: task.pid,
            owner: uid,
            of,
            person,
        };
        self.partners.all.insert(task.id, partner);
        Ok(())
    }

    /// Whose the tracked thread is, and to whom a partner of it is charged.
    fn behind(&self, of: TaskId) -> Option<(Option<u32>, Arc<Person>)> {
        if let Some(partner) = self.partners.all.get(&of) {
            return Some((Some(partner.owner), Arc::clone(&partner.person)));
        }
        let mut roots = self.roots.values();
        let root = roots.find(|root| root.threads.contains(&of))?;
        let person = match root.owner {
            Some(owner) if root.person.is_exempt && !root.person.is_root() => {
                // Known since the rule was applied, or soon: the loop does not wait for it.
                directory::known(owner).unwrap_or_else(|| Arc::new(Person::of_no_group(owner)))
            }
            _ => Arc::clone(&root.person),
        };
        Some((root.owner, person))
    }

    /// Something is tracked no longer. The partner `task` works for these tracked threads by now:
    /// from here on it is charged for one of them, unless the one that it is charged for is still
    /// there. Whether there is one.
    ///
    /// # Errors
    /// If it is more than that one's owner may have.
    pub fn follow(&mut self, task: TaskId, users: &[TaskId]) -> Result<bool, Objection> {
        let Some(partner) = self.partners.all.get(&task) else {
            return Ok(false);
        };
        let (owner, former) = (partner.owner, partner.of);
        let users = std::iter::once(former).chain(users.iter().copied());
        let mut users = users.filter_map(|user| Some((user, self.behind(user)?)));
        let Some((of, (_, person))) = users.find(|(_, (whose, _))| *whose == Some(owner)) else {
            return Ok(false);
        };
        // Who reserved for it himself pays for it himself.
        if of != former && !self.grants.contains_key(&task) {
            self.ledger.hand_over(task, &person)?;
            if let Some(partner) = self.partners.all.get_mut(&task) {
                (partner.of, partner.person) = (of, person);
            }
        }
        Ok(true)
    }

    /// The thread is tracked no longer, and charged to its user until it is dropped.
    pub fn dismiss_partner(&mut self, task: TaskId) {
        if self.partners.all.contains_key(&task) {
            self.partners.dismissed.push(task);
        }
    }

    /// The thread is not to be tracked for another one any more. Of one that was asked for, nothing
    /// happens. Whether it was a partner.
    pub fn drop_partner(&mut self, task: TaskId) -> bool {
        let was = self.partners.all.remove(&task).is_some();
        self.partners.dismissed.retain(|other| *other != task);
        if was {
            self.partners.in_doubt = true;
            self.ledger.leave(task);
        }
        was
    }

    /// Who is behind a thread, as far as paths go by it.
    #[must_use]
    pub fn party(&self, task: TaskId) -> Party {
        let payer = self.ledger.person(task).map_or(0, |person| person.uid);
        let mut roots = self.roots.values();
        let root = roots.find(|root| root.threads.contains(&task));
        let owner = match (self.partners.all.get(&task), root) {
            (Some(partner), _) => Some(partner.owner),
            (None, root) => root.and_then(|root| root.owner),
        };
        // The machine's own, which an administrator has kept: an X server, say.
        let is_everybodys = root.is_some_and(|root| root.owner == Some(0) && root.person.is_exempt);
        Party {
            payer,
            owner,
            is_everybodys,
        }
    }
}
