//! The request of a tracer to the starter of the program that it is to hear.

use std::ffi::OsString;
use std::sync::Arc;

use crate::inbox::Inbox;
use crate::ptrace::filter::Filter;

/// To be done between `fork` and `exec`, and afterwards. Nothing, for tracers that need nothing.
#[derive(Clone, Debug, Default)]
pub struct Preparation {
    /// To be installed right before the `exec`, when the process is tracked.
    pub filter: Option<Filter>,
    pub environment: Vec<(OsString, OsString)>,
    pub ends: Option<ExitStatuses>,
}

/// Tells how a traced process ended: its tracer is told that in its parent's place.
#[derive(Clone, Debug)]
pub struct ExitStatuses(pub(crate) Arc<Inbox>);

impl ExitStatuses {
    /// The status of the process `pid`, as `waitpid` gives it; none if it has not ended.
    #[must_use]
    pub fn status_of(&self, pid: u32) -> Option<i32> {
        self.0.end_of(pid, false)
    }

    /// The same, waiting for its end; none if it is not traced.
    #[must_use]
    pub fn wait_for(&self, pid: u32) -> Option<i32> {
        self.0.end_of(pid, true)
    }
}
