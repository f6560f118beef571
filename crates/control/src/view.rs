//! How things stand with each thread at a moment, for whoever looks on.

use onbeat_model::{Actuator, Bandwidth, Instant, Reservation, Rhythm, Span, Task, TaskId};

use crate::Stage;
use crate::controller::Controller;
use crate::recent::Done;
use crate::task::Thread;
use crate::task::state::Enforcement;
use crate::{What, Why};

/// One thread.
#[derive(Clone, Debug, PartialEq)]
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
    /// The path that it works on, if it is served for another thread.
    pub stage: Option<Stage>,
    /// Somebody else decides about its scheduling.
    pub taken_over: bool,
    /// How many jobs it did since its rhythm was found.
    pub jobs: u64,
    /// How many of those ended after the next one's release.
    pub missed: u64,
    /// How often its budget ran out.
    pub exhaustions: u64,
    /// How many bursts of it were heard.
    pub bursts: u64,
    /// The CPU time that these took.
    pub executed: Span,
    /// What was done to it last, and why; none if it was left alone so far.
    pub last: Option<(What, Why)>,
}

impl View {
    fn of(thread: &Thread) -> Self {
        Self {
            task: thread.task,
            rhythm: thread.rhythm(),
            kept: thread.is_kept(),
            on_trial: thread.is_on_trial(),
            held: thread.held(),
            asked_for: thread.fixed.is_some(),
            stage: thread.path.stage(),
            taken_over: matches!(thread.enforcement, Enforcement::Yielded),
            jobs: thread.figures.jobs,
            missed: thread.figures.missed,
            exhaustions: thread.figures.exhaustions,
            bursts: thread.figures.bursts,
            executed: thread.figures.executed,
            last: thread.last_entry.clone(),
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
        let slot = self.roster.find(task)?;
        self.threads.get(slot)?.as_deref()
    }
}
