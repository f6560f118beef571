//! The reasons for which something is not charged to a user, in words that tell what to do.

use onbeat_model::{Bandwidth, Refusal, Reservation, Span};

/// The owner of the quota that does not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    /// The user's own.
    User(u32),
    /// That of a group of his.
    Group(u32),
    /// That of a rule with a bandwidth of its own, by a hash of its name.
    Rule(u64),
}

impl std::fmt::Display for Whose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::User(uid) => write!(f, "user {uid}"),
            Self::Group(gid) => write!(f, "group {gid}"),
            Self::Rule(_) => f.write_str("its rule"),
        }
    }
}

/// Why something is not to be charged.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum QuotaError {
    /// It is too much.
    #[error(
        "{whose} may reserve {most}, of which {left} is left for this task: ask for less, end another \
             reservation, or have the quota raised in onbeat.toml"
    )]
    Bandwidth {
        /// The owner of the quota.
        whose: Whose,
        /// The quota.
        most: Bandwidth,
        /// The rest of it for this task.
        left: Bandwidth,
    },
    /// It is one task too many.
    #[error(
        "{whose} may have {most} tasks, and has them: give one back, or have the quota raised in onbeat.toml"
    )]
    Tasks {
        /// The owner of the quota.
        whose: Whose,
        /// The quota.
        most: u32,
    },
    /// A period, a deadline or a runtime is too short.
    #[error("a {what} of {given} is shorter than {whose} may have: ask for at least {shortest}")]
    TooShort {
        /// The owner of the quota.
        whose: Whose,
        /// The time that is too short.
        what: &'static str,
        /// The value asked for.
        given: Span,
        /// The quota.
        shortest: Span,
    },
    /// The runtime is too long, with those of the others.
    #[error(
        "all runtimes of {whose} together may be {most}, of which {left} is left for this task: ask for a shorter \
             period with a shorter runtime, end another reservation, or have longest-runtime raised in onbeat.toml"
    )]
    TooLong {
        /// The owner of the quota.
        whose: Whose,
        /// The quota.
        most: Span,
        /// The rest of it for this task.
        left: Span,
    },
    /// The kernel still holds another program's reservation for the task.
    #[error(
        "another client's reservation of the task is not given back yet: ask again when its period is over"
    )]
    Unsettled,
    /// No account has the task.
    #[error("no client asked for the task")]
    Unknown,
}

impl QuotaError {
    /// The same as the actuator's refusal of `wanted`, with how much there may be instead.
    #[must_use]
    pub fn to_refusal(self, wanted: Reservation) -> Refusal {
        let left = match self {
            Self::Bandwidth { left, .. } => left,
            Self::TooLong { left, .. } => Bandwidth::of(left, wanted.period()),
            _ => Bandwidth::ZERO,
        };
        Refusal::OverQuota {
            left,
            advice: self.to_string(),
        }
    }
}
