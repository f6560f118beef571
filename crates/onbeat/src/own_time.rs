//! The CPU time of onbeat itself.

use onbeat_kernel::clock;
use onbeat_model::{Instant, Span};

/// A reading of this process's CPU time, with the time of the reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnTime {
    pub(crate) at: Instant,
    pub(crate) cpu: Span,
}

impl OwnTime {
    pub(crate) fn now() -> Self {
        Self {
            at: clock::now(),
            cpu: clock::process_cpu_time(),
        }
    }
}
