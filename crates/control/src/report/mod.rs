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
pub(crate) mod view;

use onbeat_model::{Bandwidth, Instant, Rhythm, Span, Task, TaskId};
use serde::{Deserialize, Serialize, Serializer};

use crate::{AtSpeed, Stage, State};
use account::ThreadAccount;
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

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ServedBy {
    pub application: u32,
    pub means: Means,
    /// Why it has no reservation, though it has a period, or a smaller one than it needs.
    pub refusal: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct MarkFigures {
    pub marks: u64,
    /// Marks dropped because there were too many.
    pub marks_suppressed: u64,
    pub missed_told: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
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

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ThreadReport {
    #[serde(flatten)]
    pub task: Task,
    pub state: State,
    /// The path that it worked on last, if it was served for another thread.
    pub stage: Option<Stage>,
    #[serde(rename = "period_ns")]
    pub period: Span,
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
}

impl ThreadReport {
    /// The figures of a thread that ever had a rhythm, which was first heard of at `first_heard`.
    pub(crate) fn of(
        task: Task,
        (rhythm, state, stage): (Rhythm, State, Option<Stage>),
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
            period: rhythm.period,
            confidence: rhythm.confidence,
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
            told: MarkFigures {
                marks: account.marks.heard,
                marks_suppressed: account.marks.suppressed,
                missed_told: account.marks.missed,
            },
            executed: account.executed,
        }
    }
}

/// What a client of the service is told of a program: the present figures, and what happened since
/// it last asked.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Progress<D> {
    pub applications: Vec<Application>,
    pub threads: Vec<ThreadReport>,
    /// Why threads have no reservation or boost, or a smaller one than they need, now.
    pub refusals: Vec<(Task, String)>,
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
