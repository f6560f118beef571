//! Threads without a request that are tracked because they may work for a requested one: who may
//! own them, and who pays.
//!
//! A partner is of the same user as the task that it works for, and is charged to the same account.
//! When that one goes and it works for others, it is theirs from then on.

use std::collections::BTreeMap;
use std::sync::Arc;

use onbeat_model::TaskId;

use crate::account::Account;

/// The partners, and what is to be done about them.
#[derive(Debug, Default)]
pub struct Partners {
    pub all: BTreeMap<TaskId, ChargedPartner>,
    /// Threads that are tracked for another one no longer: to be dropped once what became of them
    /// was told.
    pub dismissed: Vec<TaskId>,
    /// Something is tracked no longer: perhaps it was what one of them worked for.
    pub in_doubt: bool,
}

/// A thread without a request.
#[derive(Clone, Debug)]
pub struct ChargedPartner {
    pub pid: u32,
    pub owner: u32,
    /// The tracked thread for which it is charged.
    pub of: TaskId,
    pub account: Arc<Account>,
}
