//! Threads that nobody asked for, and that are tracked because they may work for one that somebody
//! did ask for: whose they may be, and who pays.
//!
//! A partner is of the same user as the task that it works for, whoever asked for that one, and is
//! charged to whoever that one is charged to. When that one goes and it works for others, it is
//! theirs from then on.

use std::collections::BTreeMap;
use std::sync::Arc;

use onbeat_model::TaskId;

use crate::account::Account;

/// The partners, and what is to be done about them.
#[derive(Debug, Default)]
pub struct Partners {
    /// Each, by thread.
    pub all: BTreeMap<TaskId, Partner>,
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
    pub account: Arc<Account>,
}
