//! The log of decisions, with thread, time, reason, old and new values: one entry for each change,
//! so that every one can be explained afterwards.

use onbeat_model::{Boost, Instant, Reservation, Task};
use serde::{Deserialize, Serialize};

use super::account::ThreadAccount;
use super::in_words;
use crate::Why;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum What {
    Reserved,
    Changed,
    Released,
    Refused,
    /// Another program changed the thread, and decides from now on: it is not touched again.
    TakenOver,
    /// Nothing was changed: what the thread says of itself makes no sense.
    Doubted,
}

impl What {
    /// The word for it in JSON, on the bus and in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    #[serde(rename = "at_ns")]
    pub at: Instant,
    #[serde(flatten)]
    pub task: Task,
    pub what: What,
    #[serde(serialize_with = "in_words")]
    pub why: Why,
    pub old: Option<Reservation>,
    pub new: Option<Reservation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoostWhat {
    Boosted,
    BoostRefused,
    BoostChanged,
    /// It has its former scheduling again.
    BoostEnded,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BoostEntry {
    #[serde(rename = "at_ns")]
    pub at: Instant,
    #[serde(flatten)]
    pub task: Task,
    pub what: BoostWhat,
    #[serde(serialize_with = "in_words")]
    pub why: Why,
    pub old_boost: Option<Boost>,
    pub new_boost: Option<Boost>,
}

#[derive(Debug, Default)]
pub(crate) struct DecisionLog(Vec<Entry>);

impl DecisionLog {
    /// Enters a decision, also into the `account` of its thread.
    pub(crate) fn enter(&mut self, account: &mut ThreadAccount, entry: Entry) {
        account.last_decision = Some((entry.what, entry.why.clone()));
        if entry.what == What::Refused {
            account.last_refusal = Some(entry.why.clone());
        }
        self.0.push(entry);
    }

    pub(crate) fn drain(&mut self) -> std::vec::Drain<'_, Entry> {
        self.0.drain(..)
    }
}
