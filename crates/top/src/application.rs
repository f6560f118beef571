//! The memory of an application from snapshot to snapshot: its sums, and what it used lately.

use onbeat_control::Application as Sums;
use onbeat_model::{Bandwidth, Instant};

use crate::text::harmless;
use crate::thread::Use;

#[derive(Clone, Debug)]
pub(crate) struct ShownApplication {
    pub(crate) sums: Sums,
    used: Use,
    pub(crate) reserved: Option<Bandwidth>,
}

impl ShownApplication {
    pub(crate) fn update(before: Option<Self>, sums: Sums, at: Instant) -> Self {
        let mut used = before.map(|before| before.used).unwrap_or_default();
        used.update(at, sums.executed);
        Self {
            sums,
            used,
            reserved: None,
        }
    }

    pub(crate) fn name(&self) -> String {
        harmless(&self.sums.comm.to_text())
    }

    /// The mean share of a CPU that it used lately; since its beginning, if it was seen once.
    pub(crate) fn used(&self) -> Bandwidth {
        self.used.mean().unwrap_or(self.sums.bandwidth_used)
    }
}
