//! The reasons for which something is not charged to a user, in words that tell what to do.

use onbeat_model::{Bandwidth, Refusal, Reservation, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    User(u32),
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

impl Whose {
    /// The line of the configuration that sets `key` for it.
    fn line(self, key: &str, value: impl std::fmt::Display) -> String {
        let section = match self {
            Self::User(_) => "under [quota]".to_owned(),
            Self::Group(gid) => format!("under [quota.group.NAME] of group {gid}"),
            Self::Rule(_) => "in the rule".to_owned(),
        };
        format!(
            "have root write {key} = {value} {section} in /etc/onbeat/onbeat.toml, then systemctl reload onbeat"
        )
    }

    /// Why its tasks are ordinary ones for now: they used all of `quota`.
    pub(crate) fn used_up(self, quota: Bandwidth) -> String {
        format!(
            "{self} has used up the CPU time that goes before other programs ({quota} of a CPU), and gets more as time \
             passes; for more, {}",
            self.line("bandwidth", percent(quota + quota))
        )
    }
}

fn percent(bandwidth: Bandwidth) -> String {
    format!(
        "\"{:.0}%\"",
        (bandwidth.as_cpus() * 20.0 - 1e-6).ceil() * 5.0
    )
}

#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum QuotaError {
    #[error("{whose} may reserve {most} of a CPU, of which {left} is left for this task")]
    Bandwidth {
        whose: Whose,
        most: Bandwidth,
        left: Bandwidth,
    },
    #[error(
        "{whose} may have {most} threads in the service, and has them: end a program, or {}",
        .whose.line("tasks", u64::from(*.most) * 2)
    )]
    Tasks { whose: Whose, most: u32 },
    #[error("a {what} of {given} is shorter than {whose} may have ({shortest})")]
    TooShort {
        whose: Whose,
        what: &'static str,
        given: Span,
        shortest: Span,
    },
    #[error(
        "all runtimes of {whose} together may be {most}, of which {left} is left for this task"
    )]
    TooLong {
        whose: Whose,
        most: Span,
        left: Span,
    },
    #[error(
        "another client's reservation of the task is not given back yet: ask again when its period is over"
    )]
    Unsettled,
    #[error("the task is not tracked")]
    Unknown,
}

impl QuotaError {
    /// The same as the actuator's refusal of `wanted`, with how much there may be instead.
    pub fn to_refusal(self, wanted: Reservation) -> Refusal {
        let (left, line) = match self {
            Self::Bandwidth { whose, most, left } => {
                let enough = most - left + super::density(wanted);
                (left, Some(whose.line("bandwidth", percent(enough))))
            }
            Self::TooLong { whose, most, left } => {
                let enough =
                    Span::from_ms((most - left + wanted.runtime()).as_ns() / 1_000_000 + 1);
                let left = Bandwidth::of(left, wanted.period());
                (
                    left,
                    Some(whose.line("longest-runtime", format!("\"{enough}\""))),
                )
            }
            Self::TooShort {
                whose, what, given, ..
            } => (
                Bandwidth::ZERO,
                Some(whose.line(&format!("shortest-{what}"), format!("\"{given}\""))),
            ),
            _ => (Bandwidth::ZERO, None),
        };
        Refusal::OverQuota {
            left,
            advice: match line {
                Some(line) => format!("{self}: ask for less, end another reservation, or {line}"),
                None => self.to_string(),
            },
        }
    }
}
