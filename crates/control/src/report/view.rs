//! How things stand with each thread at a moment, for whoever looks on.

use onbeat_model::{Actuator, Bandwidth, Instant, Reservation, Rhythm, Span, Task, TaskId};

use crate::Stage;
use crate::report::jobs::Done;
use crate::run_loop::Controller;
use crate::task::Thread;
use crate::{State, What, Why};

/// One thread.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Which.
    pub task: Task,
    /// The last rhythm that it had, if it ever had one.
    pub rhythm: Option<Rhythm>,
    /// It keeps that rhythm now.
    pub kept: bool,
    /// How things stand with it.
    pub state: State,
    /// What it holds.
    pub held: Option<Reservation>,
    /// The path that it works on, if it is served for another thread.
    pub stage: Option<Stage>,
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
            state: State::of(thread),
            held: thread.held(),
            stage: thread.path.stage(),
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
