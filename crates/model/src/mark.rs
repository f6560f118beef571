//! The statements of a program on its own work, through the calls of libonbeat.

use serde::{Deserialize, Serialize};

use crate::{Instant, Span, TaskId};

/// One call of `<onbeat/job.h>` or `<onbeat/mdn.h>`.
///
/// The kernel names the thread and the time, so no thread can speak for another; what is said is
/// untrusted all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    #[serde(rename = "at_ns")]
    pub at: Instant,
    #[serde(flatten)]
    pub task: TaskId,
    #[serde(rename = "woke_ns")]
    pub woke: Instant,
    /// All CPU time that the thread had taken by then.
    #[serde(rename = "executed_ns")]
    pub executed: Span,
    #[serde(flatten)]
    pub said: Said,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    /// A job begins (AQuoSA, `qmgr_begin_cycle`).
    JobBegan,
    /// The job has ended (AQuoSA, `qmgr_end_cycle`; GRACE-OS, `finish_job`).
    JobEnded,
    /// A deadline was missed just now (Banachowski, Wu and Brandt, section 2).
    MissedDeadline,
    /// It is soft real-time from now on (GRACE-OS, section 3.1).
    RealTimeStarted {
        #[serde(rename = "period_ns")]
        period: Span,
        /// The number of jobs in a thousand that are to meet their deadline: rho.
        permille: u32,
    },
    RealTimeExited,
}
