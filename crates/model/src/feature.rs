//! A part of the machine that onbeat can use: a line of `onbeat doctor`.
//!
//! Features are probed, never guessed from a kernel's version; each crate that touches the kernel
//! probes its own and answers with these.

use serde::{Deserialize, Serialize};

/// How much of a feature there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// It cannot be used.
    None,
    /// It can be used in part, or something else stands in for it.
    Partial,
    /// It can be used in full.
    Full,
}

/// One probed feature of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    /// Its name, in the field's term.
    pub name: String,
    /// How much of it there is.
    pub standing: Support,
    /// The finding.
    pub detail: String,
    /// Advice; empty if there is nothing to do.
    pub advice: String,
}

impl Feature {
    /// A feature, what was found of it, and what to do about it (empty: nothing).
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
