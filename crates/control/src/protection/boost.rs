//! The log of boosts: who was raised above ordinary tasks, and no longer.

use onbeat_model::{Boost, Instant, Task};
use serde::Serialize;

use crate::Why;
use crate::report::in_words;

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
    /// On the sensor's clock.
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
