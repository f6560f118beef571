//! The request of a tracer to the starter of the program that it is to hear.

use std::ffi::OsString;

use crate::ptrace::{ExitStatuses, Filter};

/// To be done between `fork` and `exec`, and afterwards. Nothing, for tracers that need nothing.
#[derive(Clone, Debug, Default)]
pub struct Preparation {
    /// To be installed right before the `exec`, when the process is tracked.
    pub filter: Option<Filter>,
    /// Variables to be set in its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The tracer tells how the process ended, in the place of `waitpid`.
    pub ends: Option<ExitStatuses>,
}
