//! How things stand with a thread, in one word: the same in reports, on the bus, in `top` and on
//! the page.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    Watched,
    Ended,
}

impl State {
    const ALL: [Self; 10] = [
        Self::Kept,
        Self::AskedFor,
        Self::NoNeed,
        Self::NoBetter,
        Self::Raised,
        Self::Refused,
        Self::TakenOver,
        Self::Released,
        Self::Watched,
        Self::Ended,
    ];

    /// The word for it in JSON and on the bus.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::AskedFor => "asked-for",
            Self::NoNeed => "no-need",
            Self::NoBetter => "no-better",
            Self::Raised => "raised",
            Self::Refused => "refused",
            Self::TakenOver => "taken-over",
            Self::Released => "released",
            Self::Watched => "watched",
            Self::Ended => "ended",
        }
    }

    /// The state with this [`name`](Self::name), if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_one_name_everywhere() {
        for state in State::ALL {
            let json = format!("\"{}\"", state.name());
            assert_eq!(serde_json::to_string(&state).unwrap(), json);
            assert_eq!(State::named(state.name()), Some(state));
        }
        assert_eq!(State::named("taken_over"), None);
    }
}
