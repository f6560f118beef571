//! The state of each thread at a moment, for observers.

use onbeat_model::{Reservation, Rhythm, Span, Task};

use super::ServedBy;
use super::account::ThreadAccount;
use super::jobs::JobCounts;
use crate::{Stage, State, What, Why};

#[derive(Clone, Debug, PartialEq)]
pub struct View {
    pub task: Task,
    pub rhythm: Option<Rhythm>,
    pub kept: bool,
    pub state: State,
    pub held: Option<Reservation>,
    pub served: ServedBy,
    /// The path that it works on, if it is served for another thread.
    pub stage: Option<Stage>,
    pub counted: JobCounts,
    pub exhaustions: u64,
    pub bursts: u64,
    pub executed: Span,
    /// The last decision about it, and its reason; none if it was left alone so far.
    pub last: Option<(What, Why)>,
}

impl View {
    pub(crate) fn of(
        task: Task,
        (rhythm, kept): (Option<Rhythm>, bool),
        (state, held, stage): (State, Option<Reservation>, Option<Stage>),
        served: ServedBy,
        account: &ThreadAccount,
    ) -> Self {
        Self {
            task,
            rhythm,
            kept,
            state,
            held,
            served,
            stage,
            counted: account.counted,
            exhaustions: account.exhaustions,
            bursts: account.bursts,
            executed: account.executed,
            last: account.last_decision.clone(),
        }
    }
}
