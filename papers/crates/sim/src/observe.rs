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
    pub const fn response(&self) -> Span {
        self.ended.since(self.release)
    }

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

/// The trait, and what passes everything on: to an observer that may be missing, and to two.
macro_rules! observations {
    ($($(#[$doc:meta])* $name:ident($($what:ident: $of:ty),*);)*) => {
        /// Is called for what happens on a machine, in the order of time.
        pub trait Observer {
            $($(#[$doc])* fn $name(&mut self, $($what: $of),*) {
                $(let _ = $what;)*
            })*
        }

        impl<O: Observer> Observer for Option<O> {
            $(fn $name(&mut self, $($what: $of),*) {
                if let Some(observer) = self {
                    observer.$name($($what),*);
                }
            })*
        }

        impl<A: Observer, B: Observer> Observer for (A, B) {
            $(fn $name(&mut self, $($what: $of),*) {
                self.0.$name($($what),*);
                self.1.$name($($what),*);
            })*
        }
    };
}

observations! {
    job(job: &Completion);
    ran(stretch: &Stretch);
    burst(burst: &Burst);
    /// The budget of a task ran out, and it waits for the next.
    exhausted(task: TaskIndex, at: Instant);
    /// A task gave up the rest of its budget, and waits for the next.
    yielded(task: TaskIndex, at: Instant);
    /// A task says something: a missed deadline notification.
    marked(mark: &Mark);
    exited(task: TaskIndex, at: Instant);
}

impl Observer for () {}
