//! How things stand with a thread, in one word: the same in reports, on the bus, in `top` and on
//! the page.

use serde::{Deserialize, Serialize};

#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum State {
    /// It has a period, and a reservation that follows it.
    Kept,
    /// It has a reservation that was asked for, whatever its period.
    AskedFor,
    /// It has a period, and nobody else wants its CPUs: it is left alone for now.
    NoNeed,
    /// It has a period, and its application waits no longer without reservations: it has none.
    NoBetter,
    /// Its application needs help, and it is raised above ordinary threads.
    Raised,
    /// It has a period, but no reservation: the log says why.
    Refused,
    /// Another program, an administrator or its own program decides about its scheduling.
    TakenOver,
    /// It had a period, and has lost it or stands still.
    Released,
    /// It never had a period: it is left alone.
    #[default]
    Watched,
    Ended,
    /// It is of a recording, in which nothing was decided.
    Recorded,
}

impl State {
    /// The word for it in JSON and on the bus.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}
