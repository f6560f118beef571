//! The limits of RealtimeKit's clients.

use std::sync::{Arc, Mutex, PoisonError};

use onbeat_model::Span;

/// The most that is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityLimits {
    pub priority: u32,
    pub nice: i32,
    pub rttime: Span,
    /// Whether a client gets it where there is no polkit to ask.
    pub without_polkit: bool,
}

impl Default for PriorityLimits {
    /// RealtimeKit's own.
    fn default() -> Self {
        Self {
            priority: 20,
            nice: -15,
            rttime: Span::from_ms(200),
            without_polkit: false,
        }
    }
}

/// The limits in force, for all who go by them; none if clients are not served.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitsInForce(Arc<Mutex<Option<PriorityLimits>>>);

impl LimitsInForce {
    pub(super) fn get(&self) -> Option<PriorityLimits> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, limits: Option<PriorityLimits>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }
}
