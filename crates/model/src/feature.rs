//! A part of the machine that onbeat can use: a line of `onbeat doctor`.
//!
//! Features are probed, never guessed from a kernel's version; each crate that touches the kernel
//! probes its own and answers with these.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    None,
    /// It can be used in part, or something else stands in for it.
    Partial,
    Full,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    pub name: String,
    pub standing: Support,
    pub detail: String,
    pub advice: String,
}

impl Feature {
    #[must_use]
    pub fn new(name: &str, standing: Support, detail: &str, advice: &str) -> Self {
        Self {
            name: name.to_owned(),
            standing,
            detail: detail.to_owned(),
            advice: advice.to_owned(),
        }
    }
}
