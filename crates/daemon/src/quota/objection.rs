//! Why something is not to be charged to somebody, in words that tell what to do.

use onbeat_model::{Bandwidth, Span};

/// Whose quota does not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    /// The user's own.
    User(u32),
    /// That of a group of his.
    Group(u32),
}

impl std::fmt::Display for Whose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::User(uid) => write!(f, "user {uid}"),
            Self::Group(gid) => write!(f, "group {gid}"),
        }
    }
}

/// Why something is not to be charged.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Objection {
    /// It is too much.
    #[error(
        "{whose} may reserve {most}, of which {left} is left for this task: ask for less, end another \
             reservation, or have the quota raised in onbeat.toml"
    )]
    Bandwidth {
        /// Whose quota it is.
        whose: Whose,
        /// The quota.
        most: Bandwidth,
        /// What is left of it for this task.
        left: Bandwidth,
    },
    /// It is one task too many.
    #[error(
        "{whose} may have {most} tasks, and has them: give one back, or have the quota raised in onbeat.toml"
    )]
    Tasks {
        /// Whose quota it is.
        whose: Whose,
        /// The quota.
        most: u32,
    },
    /// The period is too short.
    #[error("a period of {period} is shorter than {whose} may have: ask for at least {shortest}")]
    Period {
        /// Whose quota it is.
        whose: Whose,
        /// What was asked for.
        period: Span,
        /// The quota.
        shortest: Span,
    },
    /// The kernel holds yet what somebody else reserved for the task.
    #[error(
        "what somebody else reserved for the task is not given back yet: ask again when its period is over"
    )]
    Unsettled,
    /// Nobody answers for the task.
    #[error("the task belongs to nobody who asked for it")]
    Unknown,
}
