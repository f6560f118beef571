//! The observations of a running machine. An observer takes what it needs and leaves the rest.

use onbeat_model::{Burst, Instant, Mark, Span, Speed};

use crate::{CpuIndex, TaskIndex, Work};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub task: TaskIndex,
    pub number: u64,
    /// When it was due to begin.
    pub release: Instant,
    /// When it first got a CPU.
    pub started: Instant,
    pub ended: Instant,
    pub deadline: Instant,
    pub demand: Work,
    /// The CPU time that took.
    pub executed: Span,
    /// Its reservation's budget ran out meanwhile.
    pub exhausted: bool,
}

impl Completion {
    /// From release to end.
    #[must_use]
    pub const fn response(&self) -> Span {
        self.ended.since(self.release)
    }

    #[must_use]
    pub fn missed(&self) -> bool {
        self.ended > self.deadline
    }
}

/// A stretch of time in which one CPU ran one task at one speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub cpu: CpuIndex,
    pub task: TaskIndex,
    pub from: Instant,
    pub to: Instant,
    pub speed: Speed,
}

/// Is called for what happens on a machine, in the order of time.
pub trait Observer {
    fn job(&mut self, _job: &Completion) {}
    fn ran(&mut self, _stretch: &Stretch) {}
    fn burst(&mut self, _burst: &Burst) {}
    /// The budget of a task ran out, and it waits for the next.
    fn exhausted(&mut self, _task: TaskIndex, _at: Instant) {}
    /// A task gave up the rest of its budget, and waits for the next.
    fn yielded(&mut self, _task: TaskIndex, _at: Instant) {}
    /// A task says something: a missed deadline notification.
    fn marked(&mut self, _mark: &Mark) {}
    fn exited(&mut self, _task: TaskIndex, _at: Instant) {}
}

impl Observer for () {}

impl<O: Observer> Observer for Option<O> {
    fn job(&mut self, job: &Completion) {
        if let Some(observer) = self {
            observer.job(job);
        }
    }
    fn ran(&mut self, stretch: &Stretch) {
        if let Some(observer) = self {
            observer.ran(stretch);
        }
    }
    fn burst(&mut self, burst: &Burst) {
        if let Some(observer) = self {
            observer.burst(burst);
        }
    }
    fn exhausted(&mut self, task: TaskIndex, at: Instant) {
        if let Some(observer) = self {
            observer.exhausted(task, at);
        }
    }
    fn yielded(&mut self, task: TaskIndex, at: Instant) {
        if let Some(observer) = self {
            observer.yielded(task, at);
        }
    }
    fn marked(&mut self, mark: &Mark) {
        if let Some(observer) = self {
            observer.marked(mark);
        }
    }
    fn exited(&mut self, task: TaskIndex, at: Instant) {
        if let Some(observer) = self {
            observer.exited(task, at);
        }
    }
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn job(&mut self, job: &Completion) {
        self.0.job(job);
        self.1.job(job);
    }
    fn ran(&mut self, stretch: &Stretch) {
        self.0.ran(stretch);
        self.1.ran(stretch);
    }
    fn burst(&mut self, burst: &Burst) {
        self.0.burst(burst);
        self.1.burst(burst);
    }
    fn exhausted(&mut self, task: TaskIndex, at: Instant) {
        self.0.exhausted(task, at);
        self.1.exhausted(task, at);
    }
    fn yielded(&mut self, task: TaskIndex, at: Instant) {
        self.0.yielded(task, at);
        self.1.yielded(task, at);
    }
    fn marked(&mut self, mark: &Mark) {
        self.0.marked(mark);
        self.1.marked(mark);
    }
    fn exited(&mut self, task: TaskIndex, at: Instant) {
        self.0.exited(task, at);
        self.1.exited(task, at);
    }
}
