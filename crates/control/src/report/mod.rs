//! The report of a run: figures for each thread that ever had a rhythm, and what onbeat itself
//! cost.

pub(crate) mod account;
pub(crate) mod application;
pub(crate) mod decision;
pub(crate) mod exited;
pub(crate) mod histogram;
pub(crate) mod jobs;
pub(crate) mod reason;
pub(crate) mod stage;
pub(crate) mod state;

use onbeat_model::{Bandwidth, Instant, Reservation, Rhythm, Span, Task, TaskId};
use serde::{Deserialize, Serialize, Serializer};

use crate::{AtSpeed, Stage, State, What};
use account::{MarkFigures, ThreadAccount};
use application::{Application, Means};
use exited::Sums;
use jobs::{DoneJob, JobCounts};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ResponseTimes {
    #[serde(rename = "p50_ns")]
    pub p50: Span,
    #[serde(rename = "p95_ns")]
    pub p95: Span,
    #[serde(rename = "p99_ns")]
    pub p99: Span,
    #[serde(rename = "max_ns")]
    pub max: Span,
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
    /// Mean share of a CPU that it used meanwhile.
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
    /// It has a period now.
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
    pub response_time: Option<ResponseTimes>,
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
        let times = &account.response_times;
        let response_time = || {
            Some(ResponseTimes {
                p50: times.quantile(0.50)?,
                p95: times.quantile(0.95)?,
                p99: times.quantile(0.99)?,
                max: times.max()?,
            })
        };
        let holding = &account.holding;
        Self {
            task,
            state,
            stage,
            period: rhythm.map(|rhythm| rhythm.period),
            confidence: rhythm.map_or(0.0, |rhythm| rhythm.confidence),
            counted: account.counted,
            response_time: response_time(),
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
    why: &impl std::fmt::Display,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(why)
}
