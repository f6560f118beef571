//! The log of decisions, with thread, time, reason, old and new values: one entry for each change,
//! so that every one can be explained afterwards.

use std::fmt;

use onbeat_decide::supervisor::GaveWay;
use onbeat_model::{Boost, Instant, Refusal, Reservation, Span, Speed, Task};
use serde::{Deserialize, Serialize};

use super::account::ThreadAccount;
use super::in_words;
use crate::{SpeedEntry, Stage};

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

/// The reason for an entry in the journal; its words say when it is given.
#[derive(Clone, Debug, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Why {
    Found {
        period: Span,
        bursts: usize,
        confidence: f64,
    },
    Told {
        period: Span,
    },
    Contradicts {
        period: Span,
        marked: Span,
    },
    SaysNoMore,
    MissedDeadline {
        factor: f64,
    },
    Demand {
        job: Span,
    },
    Waits,
    NoNeed,
    RealTime,
    Compares,
    NoBetter,
    UsedUp,
    ShortestPeriod,
    ReservedInstead,
    AsksForPriority,
    Changed,
    Exhausted,
    Yields,
    OverQuota,
    UserOverQuota,
    RateChanged {
        from: Span,
        to: Span,
    },
    GaveWay {
        turn: usize,
        of: usize,
        how: GaveWay,
    },
    SpeedFalls {
        from: Speed,
        to: Speed,
    },
    SpeedRose {
        from: Speed,
        to: Speed,
    },
    RoomAgain,
    GivenBackByKernel,
    RhythmLost,
    NoLongerBlocks {
        since: Span,
    },
    Idle {
        since: Span,
    },
    AskedFor,
    TakenBack,
    Untracked,
    OnPath {
        stage: Stage,
        seen: (u64, u64),
    },
    OffPath,
    Finished,
    Refused(Refusal),
}

impl Why {
    /// Its kind, whatever its figures.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.into(),
            other => other.into(),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found {
                period,
                bursts,
                confidence,
            } => write!(
                f,
                "it has a period of {period}, seen in {bursts} bursts (confidence {confidence:.4})"
            ),
            Self::Told { period } => write!(f, "it marks its jobs: one each {period}"),
            Self::Contradicts { period, marked } => write!(
                f,
                "it declares one job each {period}, but marks one each {marked}: the declared period counts"
            ),
            Self::SaysNoMore => f.write_str("it no longer marks its jobs"),
            Self::MissedDeadline { factor } => write!(
                f,
                "it says that it missed a deadline: its budget is raised by {:.0}%",
                (factor - 1.0) * 100.0
            ),
            Self::Demand { job } => write!(f, "its jobs take {job}"),
            Self::Waits => f.write_str("its application waits for CPUs that others use"),
            Self::RealTime => {
                f.write_str("threads with a real-time priority of their own need the CPUs it would have")
            }
            Self::NoNeed => f.write_str("nobody else wants its CPUs"),
            Self::Compares => f.write_str(
                "its application still waits for CPUs: it is an ordinary one for a moment, to see whether onbeat helps",
            ),
            Self::NoBetter => f.write_str(
                "its application waited no longer without onbeat: it is an ordinary one for a while",
            ),
            Self::UsedUp => f.write_str("its application has used up its CPU time before others"),
            Self::ShortestPeriod => f.write_str("its priority follows the shortest period in its application"),
            Self::ReservedInstead => f.write_str("it has a reservation instead"),
            Self::AsksForPriority => {
                f.write_str("it asked for a real-time priority, and gets that")
            }
            Self::Changed => f.write_str("it or another program set its nice value"),
            Self::UserOverQuota => f.write_str("its user has used up the quota"),
            Self::Exhausted => f.write_str("a job ran out of budget"),
            Self::Yields => f.write_str(
                "it calls sched_yield(): that gives up the rest of a reservation's budget, so it goes without",
            ),
            Self::OverQuota => f.write_str(
                "it uses more than its reservation, and its user has used up the quota: it has no reservation until the quota has filled again",
            ),
            Self::RateChanged { from, to } => {
                write!(f, "its period changed from {from} to {to}")
            }
            Self::GaveWay { turn, of, how } => {
                write!(f, "reservations do not all fit, {turn} of {of} to give way: {how}")
            }
            Self::SpeedFalls { from, to } => {
                write!(f, "the CPUs will slow down from {from} to {to}")
            }
            Self::SpeedRose { from, to } => write!(f, "the CPUs sped up from {from} to {to}"),
            Self::RoomAgain => f.write_str("there is CPU time to reserve again"),
            Self::GivenBackByKernel => f.write_str("the kernel had dropped its reservation"),
            Self::RhythmLost => f.write_str("it is no longer periodic"),
            Self::NoLongerBlocks { since } => write!(f, "it has not blocked for {since}"),
            Self::Idle { since } => write!(f, "it has not run for {since}"),
            Self::AskedFor => f.write_str("a client asked for it"),
            Self::TakenBack => f.write_str("its client released it"),
            Self::Untracked => f.write_str("no client tracks it any more"),
            Self::OnPath {
                stage,
                seen: (seen, of),
            } => write!(f, "it is {stage}: seen in {seen} of {of} jobs"),
            Self::OffPath => f.write_str("the program that it works for has no reservation any more"),
            Self::Finished => f.write_str("onbeat ends"),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Decision {
    Reservation(Entry),
    Boost(BoostEntry),
    Speed(SpeedEntry),
}

impl Decision {
    #[must_use]
    pub fn on_reservation(self) -> Option<Entry> {
        match self {
            Self::Reservation(entry) => Some(entry),
            Self::Boost(_) | Self::Speed(_) => None,
        }
    }
}
