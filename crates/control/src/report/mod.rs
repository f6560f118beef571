//! What a run comes to: figures for each thread that ever had a rhythm, and what onbeat itself
//! cost.

pub(crate) mod account;
pub(crate) mod decision;
pub(crate) mod exited;
pub(crate) mod histogram;
pub(crate) mod jobs;
pub(crate) mod reason;
pub(crate) mod state;
pub(crate) mod view;

use onbeat_model::{Actuator, Bandwidth, Instant, Span, Task, TaskId};
use serde::Serialize;

use crate::report::exited::Sums;
use crate::run_loop::Controller;
use crate::task::Thread;
use crate::{AtSpeed, Stage, State};
use jobs::Done;
use view::View;

/// Quantiles of the response times of a thread's jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ResponseTimes {
    /// Half of the jobs took no longer.
    #[serde(rename = "p50_ns")]
    pub p50: Span,
    /// 95% of the jobs took no longer.
    #[serde(rename = "p95_ns")]
    pub p95: Span,
    /// 99% of the jobs took no longer.
    #[serde(rename = "p99_ns")]
    pub p99: Span,
    /// The longest.
    #[serde(rename = "max_ns")]
    pub max: Span,
}

/// The figures of one thread, from when its rhythm was first found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadReport {
    /// The thread.
    #[serde(flatten)]
    pub task: Task,
    /// How things stood in the end.
    pub state: State,
    /// The path that it worked on last, if it was served for another thread.
    pub stage: Option<Stage>,
    /// Its last period.
    #[serde(rename = "period_ns")]
    pub period: Span,
    /// How sure that is.
    pub confidence: f64,
    /// Jobs since it was found to have a rhythm.
    pub jobs: u64,
    /// From release to end, over these jobs.
    pub response_time: Option<ResponseTimes>,
    /// Jobs that ended after the next one's release.
    pub missed: u64,
    /// How long it took from when it was first heard of to its first reservation.
    #[serde(rename = "reserved_after_ns")]
    pub reserved_after: Option<Span>,
    /// For how long it held a reservation.
    #[serde(rename = "held_ns")]
    pub held: Span,
    /// Mean share of a CPU that it used meanwhile.
    pub bandwidth_used: Bandwidth,
    /// Mean share of a CPU that was reserved for it meanwhile.
    pub bandwidth_reserved: Bandwidth,
    /// How often its reservation was set or changed.
    pub changes: u64,
    /// How often its budget ran out.
    pub exhaustions: u64,
    /// How often it said something of its own work, and was heard.
    pub marks: u64,
    /// How often it said so and was not heard, having said too much.
    pub marks_suppressed: u64,
    /// How often it said that it missed a deadline.
    pub missed_told: u64,
    /// All CPU time it took while tracked.
    #[serde(rename = "executed_ns")]
    pub executed: Span,
}

impl ThreadReport {
    /// Of a thread that ever had a rhythm.
    pub(crate) fn of(thread: &Thread, ended: bool, now: Instant) -> Option<Self> {
        let rhythm = thread.rhythm()?;
        let figures = &thread.figures;
        let times = &figures.response_times;
        let response_time = || {
            Some(ResponseTimes {
                p50: times.quantile(0.50)?,
                p95: times.quantile(0.95)?,
                p99: times.quantile(0.99)?,
                max: times.max()?,
            })
        };
        Some(Self {
            task: thread.task,
            state: if ended {
                State::Ended
            } else {
                State::of(thread)
            },
            stage: thread.path.last_stage(),
            period: rhythm.period,
            confidence: rhythm.confidence,
            jobs: figures.jobs,
            response_time: response_time(),
            missed: figures.missed,
            reserved_after: figures
                .first_reserved
                .map(|at| at.since(thread.first_heard)),
            held: figures.held(now),
            bandwidth_used: figures.used_while_held(now),
            bandwidth_reserved: figures.reserved(now),
            changes: figures.changes,
            exhaustions: figures.exhaustions,
            marks: figures.marks,
            marks_suppressed: figures.marks_suppressed,
            missed_told: figures.missed_told,
            executed: figures.executed,
        })
    }
}

/// The figures of a whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Every thread that ever had a rhythm, those that used most CPU time first; of those that
    /// ended, the last thousand.
    pub threads: Vec<ThreadReport>,
    /// The sums over threads that had a rhythm and ended before those.
    pub earlier: Sums,
    /// How many further threads were heard of and left alone, having no rhythm.
    pub left_alone: u64,
    /// How many threads without a reservation were boosted, for they said that they had missed a
    /// deadline.
    pub boosted: u64,
    /// How many threads had the largest share of an ordinary thread while they had no reservation.
    pub protected: u64,
    /// How many events the sensor lost.
    pub lost_events: u64,
    /// For how long the CPUs had which speed, the lowest first; empty if it was left alone.
    pub speeds: Vec<AtSpeed>,
    /// From the first event to the end.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Span,
}

impl<A: Actuator> Controller<A> {
    /// The figures up to `now` of the threads that ever had a rhythm, and have not ended.
    pub fn reports(&self, now: Instant) -> impl Iterator<Item = ThreadReport> {
        let threads = self.tasks.iter();
        threads.filter_map(move |thread| ThreadReport::of(thread, false, now))
    }

    /// The sums over all threads that ever had a rhythm, up to `now`.
    #[must_use]
    pub fn sums(&self, now: Instant) -> Sums {
        let mut sums = self.records.ended.sums();
        self.reports(now).for_each(|report| sums.add(&report));
        sums
    }

    /// How many events the sensor has lost.
    #[must_use]
    pub const fn lost_events(&self) -> u64 {
        self.records.lost
    }

    /// What all reservations together may have.
    #[must_use]
    pub const fn total(&self) -> Bandwidth {
        self.arbiter.limits().total
    }

    /// Every thread that is known.
    pub fn view(&self) -> impl Iterator<Item = View> {
        self.tasks.iter().map(View::of)
    }

    /// The last jobs of `task` that ended after `since`, in the order in which they were told.
    pub fn recent_jobs(&self, task: TaskId, since: Instant) -> impl Iterator<Item = Done> {
        let thread = self.known(task).into_iter();
        thread.flat_map(move |thread| thread.figures.recent.since(since))
    }

    /// When `task` woke in the last seconds; of one that says itself where its jobs are, nothing.
    pub fn wakeups(&self, task: TaskId) -> impl Iterator<Item = Instant> {
        let bursts = self.known(task).into_iter().flat_map(Thread::bursts);
        bursts.map(|burst| burst.woke)
    }

    fn known(&self, task: TaskId) -> Option<&Thread> {
        let slot = self.tasks.find(task)?;
        self.tasks.get(slot)
    }
}
