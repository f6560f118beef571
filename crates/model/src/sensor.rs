//! The seam towards the world's events: what every tracer, replay and simulation offers the loop.

use std::collections::BTreeSet;

use crate::{Event, Follow, Instant, Span, TaskId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Open,
    /// Nothing will ever come again: the recording is over, or every tracked task is gone.
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningProgram {
    pub process: TaskId,
    pub uid: u32,
    /// The path of its file, or the end of one that is too long, without the slash that begins it.
    pub path: String,
    /// Its cgroups: another number for others.
    pub groups: u64,
}

/// Where a task comes from, as it was when it was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The process that started the task's.
    pub parent: u32,
    /// Its owner; none of one with the rights of two users.
    pub uid: Option<u32>,
}

pub trait Sensor {
    type Error: std::error::Error + Send + Sync + 'static;

    /// Tracks the thread `tid`; with it, from now on, what [`Follow`] says. An event
    /// [`Event::Tracked`] follows for each task that comes to be tracked.
    fn track(&mut self, tid: u32, follow: Follow) -> Result<(), Self::Error>;

    /// Tracks the thread `tid` alone, which may work for the tracked task `partner`; none of the
    /// kernel's.
    /// Fails if there is no such thread, no room, or it may not be tracked for that task.
    fn track_partner(&mut self, tid: u32, partner: TaskId) -> Result<(), Self::Error> {
        let _ = partner;
        self.track(tid, Follow::Alone)
    }

    fn untrack(&mut self, tasks: &[TaskId]) -> Result<(), Self::Error>;

    /// Waits at most `timeout` for events and appends them to `events`. Returns early when a budget
    /// ran out, because that cannot wait.
    /// Fails if the source broke; what was appended is good.
    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, Self::Error>;

    /// Tells from now on which processes run a program whose file has one of these `names`, or have
    /// one themselves. The empty name is that of all.
    fn tell_programs(&mut self, names: &BTreeSet<String>) -> Result<(), Self::Error> {
        let _ = names;
        Ok(())
    }

    /// Those that run one now, but none with the rights of two users. A sensor need not tell them.
    fn programs(&mut self) -> Result<Vec<RunningProgram>, Self::Error> {
        Ok(Vec::new())
    }

    /// Those that are not tracked and have executed one since this was last called: a sensor may
    /// leave some out. A poll returns early for one.
    fn take_begun(&mut self) -> Vec<RunningProgram> {
        Vec::new()
    }

    /// Where `task` comes from, which the last poll told to be tracked or to be named anew; none if
    /// the source does not tell.
    fn origin(&self, task: TaskId) -> Option<Origin> {
        let _ = task;
        None
    }

    /// Whether tasks were begun since this was last called that are to be tracked, and are not,
    /// because their user began too many at a time.
    fn take_missed_starts(&mut self) -> bool {
        false
    }

    fn now(&self) -> Instant;

    /// All CPU time that `task` has used up to now, to the nanosecond; none if it is gone or the
    /// source does not tell.
    fn executed(&mut self, task: TaskId) -> Option<Span>;

    /// What `task` uses above ordinary priority from now on is charged to the application of this
    /// number, which is the caller's own; 0 is none.
    fn assign(&mut self, task: TaskId, application: u32) {
        let _ = (task, application);
    }

    /// All CPU time that tasks of this application, and tasks that inherited their priorities, have
    /// used above ordinary effective priority; none if the source does not tell.
    fn spent(&mut self, application: u32) -> Option<Span> {
        let _ = application;
        None
    }

    /// When a thread last got a CPU by a real-time priority that somebody else has given it; none
    /// if the source does not tell, or none did.
    fn others_real_time(&mut self) -> Option<Instant> {
        None
    }

    /// All time that each CPU has been idle up to now, one figure for each CPU that is in use; none
    /// if the source does not tell.
    fn idle(&mut self) -> Option<Vec<Span>> {
        None
    }
}
