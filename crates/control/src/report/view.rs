//! The state of each thread at a moment, for observers.

use onbeat_model::{Reservation, Rhythm, Span, Task};

use super::account::ThreadAccount;
use super::jobs::JobCounts;
use crate::{Stage, State, What, Why};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorksFor {
    pub application: u32,
    /// The path that it works on, if it is served for another thread.
    pub stage: Option<Stage>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct View {
    pub task: Task,
    pub rhythm: Option<Rhythm>,
    pub kept: bool,
    pub state: State,
    pub held: Option<Reservation>,
    pub works_for: WorksFor,
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
        (state, held, works_for): (State, Option<Reservation>, WorksFor),
        account: &ThreadAccount,
    ) -> Self {
        Self {
            task,
            rhythm,
            kept,
            state,
            held,
            works_for,
            counted: account.counted,
            exhaustions: account.exhaustions,
            bursts: account.bursts,
            executed: account.executed,
            last: account.last_decision.clone(),
        }
    }
}
