//! How things stand with each thread at a moment, for whoever looks on.

use onbeat_model::{Actuator, Bandwidth, Reservation, Rhythm, Task};

use crate::controller::Controller;
use crate::thread::{Relation, Thread};

/// One thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Which.
    pub task: Task,
    /// The last rhythm that it had, if it ever had one.
    pub rhythm: Option<Rhythm>,
    /// It keeps that rhythm now.
    pub kept: bool,
    /// It holds a reservation on trial.
    pub on_trial: bool,
    /// What it holds.
    pub held: Option<Reservation>,
    /// What it holds is what was asked for, whatever its rhythm.
    pub asked_for: bool,
    /// Somebody else decides about its scheduling.
    pub taken_over: bool,
    /// How many jobs it did since its rhythm was found.
    pub jobs: u64,
    /// How many of those ended after the next one's release.
    pub missed: u64,
    /// How often its budget ran out.
    pub exhaustions: u64,
}

impl View {
    fn of(thread: &Thread) -> Self {
        Self {
            task: thread.task,
            rhythm: thread.rhythm(),
            kept: thread.is_kept(),
            on_trial: thread.is_on_trial(),
            held: thread.held,
            asked_for: thread.fixed.is_some(),
            taken_over: thread.relation == Relation::TakenOver,
            jobs: thread.figures.jobs,
            missed: thread.figures.missed,
            exhaustions: thread.figures.exhaustions,
        }
    }
}

impl<A: Actuator> Controller<A> {
    /// What all reservations together may have.
    #[must_use]
    pub const fn total(&self) -> Bandwidth {
        self.limits.total
    }

    /// Every thread that is known.
    pub fn view(&self) -> impl Iterator<Item = View> {
        self.threads.iter().flatten().map(|thread| View::of(thread))
    }
}
