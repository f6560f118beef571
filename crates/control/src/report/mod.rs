//! The report of a run: figures for each thread that ever had a rhythm, and what onbeat itself
//! cost.

pub(crate) mod account;
pub(crate) mod application;
pub(crate) mod decision;
pub(crate) mod exited;

use std::fmt;

use onbeat_model::{Bandwidth, Instant, Name, Quantiles, Reservation, Rhythm, Span, Task, TaskId};
use serde::{Deserialize, Serialize, Serializer};

use crate::{AtSpeed, What};
use account::{DoneJob, JobCounts, MarkFigures, ThreadAccount};
use application::{Application, Means};
use exited::Sums;

/// How things stand with a thread, in one word: the same in reports, on the bus, in `top` and on
/// the page.
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

/// One thread's place on the path of another one's jobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The thread with whose rhythm the path works: the first stage.
    pub head_tid: u32,
    pub head: Name,
    /// Its period, which is that of the whole path; of several paths, the shortest.
    #[serde(rename = "path_period_ns")]
    pub period: Span,
    /// It works in every so many-th job of the path: 1 for each. The ratio of its own period to the
    /// path's.
    #[serde(default)]
    pub every: u32,
    /// Which stage this is, from 2 in the order in which they were found.
    pub number: u32,
    pub paths: usize,
    pub confidence: f64,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hz = (1e10 / self.period.as_ns().max(1) as f64).round() / 10.0;
        let Self { number, head, .. } = self;
        write!(f, "stage {number} of {head}'s {hz} Hz pipeline")?;
        match self.every {
            0 | 1 => {}
            2 => f.write_str(" in every second job")?,
            3 => f.write_str(" in every third job")?,
            more => write!(f, " in every {more}th job")?,
        }
        match self.paths.saturating_sub(1) {
            0 => Ok(()),
            1 => f.write_str(" and of one more"),
            more => write!(f, " and of {more} more"),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ServedBy {
    pub application: u32,
    pub means: Means,
    /// Why it has no reservation, though it has a period, or a smaller one than it needs.
    pub refusal: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ReservationFigures {
    #[serde(rename = "reserved_after_ns")]
    pub reserved_after: Option<Span>,
    #[serde(rename = "held_ns")]
    pub held: Span,
    pub bandwidth_used: Bandwidth,
    /// Mean share of a CPU that was reserved for it meanwhile.
    pub bandwidth_reserved: Bandwidth,
    pub changes: u64,
    pub exhaustions: u64,
}

/// How things stand with a thread at a moment. Nothing of it is in the report of a run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Present {
    /// The user who is charged, if known.
    pub user: Option<u32>,
    pub reservation: Option<Reservation>,
    pub is_locked: bool,
    pub bursts: u64,
    /// The last decision about it, and its reason; none if it was left alone so far.
    pub last: Option<What>,
    pub why: String,
    /// The kind of what it was refused, whatever the figures.
    pub refusal_kind: Option<String>,
}

/// All that is known of a thread, in each view and in the report of a run. Fields that an earlier
/// onbeat did not write may be missing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ThreadReport {
    #[serde(flatten)]
    pub task: Task,
    pub state: State,
    /// The path that it worked on last, if it was served for another thread.
    pub stage: Option<Stage>,
    /// None if it never had one.
    #[serde(rename = "period_ns")]
    pub period: Option<Span>,
    pub confidence: f64,
    #[serde(flatten)]
    pub counted: JobCounts,
    pub response_time: Option<Quantiles>,
    #[serde(flatten)]
    pub reservations: ReservationFigures,
    #[serde(flatten)]
    pub served: ServedBy,
    #[serde(flatten)]
    pub told: MarkFigures,
    #[serde(rename = "executed_ns")]
    pub executed: Span,
    #[serde(flatten, skip_serializing_if = "is_nothing")]
    pub present: Present,
}

fn is_nothing(present: &Present) -> bool {
    *present == Present::default()
}

impl ThreadReport {
    /// The figures of a thread that was first heard of at `first_heard`.
    pub(crate) fn of(
        task: Task,
        (rhythm, state, stage): (Option<Rhythm>, State, Option<Stage>),
        served: ServedBy,
        first_heard: Instant,
        account: &ThreadAccount,
        now: Instant,
    ) -> Self {
        let holding = &account.holding;
        Self {
            task,
            state,
            stage,
            period: rhythm.map(|rhythm| rhythm.period),
            confidence: rhythm.map_or(0.0, |rhythm| rhythm.confidence),
            counted: account.counted,
            response_time: account.response_times.quantiles(),
            reservations: ReservationFigures {
                reserved_after: holding.first.map(|at| at.since(first_heard)),
                held: holding.held(now),
                bandwidth_used: holding.used(now),
                bandwidth_reserved: holding.reserved(now),
                changes: holding.changes,
                exhaustions: account.exhaustions,
            },
            served,
            told: account.marks,
            executed: account.executed,
            present: Present::default(),
        }
    }
}

/// What an observer is told: the present figures, and what happened since it last asked.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Progress<D> {
    #[serde(rename = "now_ns")]
    pub now: Instant,
    /// The bandwidth of all reservations.
    pub reserved: Bandwidth,
    /// The most that this may be.
    pub total: Bandwidth,
    pub applications: Vec<Application>,
    pub threads: Vec<ThreadReport>,
    pub jobs: Vec<(TaskId, Vec<DoneJob>)>,
    pub decisions: Vec<D>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Every application, the one that used most CPU time first.
    pub applications: Vec<Application>,
    /// Every thread that ever had a rhythm, those that used most CPU time first; of those that
    /// ended, the last thousand.
    pub threads: Vec<ThreadReport>,
    /// The sums over threads that had a rhythm and ended before those.
    pub earlier: Sums,
    pub left_alone: u64,
    /// Threads that were raised while they had no reservation.
    pub protected: u64,
    pub lost_events: u64,
    /// For how long the CPUs had which speed, the lowest first; empty if it was left alone.
    pub speeds: Vec<AtSpeed>,
    #[serde(rename = "began_ns")]
    pub began: Instant,
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Span,
}

pub(crate) fn in_words<S: Serializer>(
    why: &impl fmt::Display,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(why)
}
