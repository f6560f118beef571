//! The state of enforcement of a thread.
//!
//! The enum holds its data, so that leaving a state drops all that belonged to it. Only the
//! functions in this file go from one state to another.
//!
//! ```text
//!   Open ──── back_off ────▶ BackOff ──── retry, in time ────▶ Open
//!   any ── reserve ──▶ Open    any ── yield_to_other ──▶ Yielded    any ── gone ──▶ Gone
//! ```
//!
//! In a back-off, `released` changes what is in force, and the back-off goes on.

use onbeat_model::{Instant, Reservation};

use crate::Why;

/// The reservation in force for a thread, and whether the actuator can be asked for more.
#[derive(Debug)]
pub(crate) enum Enforcement {
    Open(Option<Reservation>),
    /// The actuator refused: it is asked again at `until`.
    BackOff {
        held: Option<Reservation>,
        until: Instant,
        /// Why the thread is to have something else then, if that is known already.
        reason: Option<Why>,
    },
    /// Another program, an administrator or its own program decides about the thread's scheduling,
    /// for good.
    Yielded,
    Gone,
}

impl Default for Enforcement {
    fn default() -> Self {
        Self::Open(None)
    }
}

impl Enforcement {
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    pub(crate) const fn is_backed_off(&self) -> bool {
        matches!(self, Self::BackOff { .. })
    }

    pub(crate) const fn is_over(&self) -> bool {
        matches!(self, Self::Yielded | Self::Gone)
    }

    pub(crate) const fn is_yielded(&self) -> bool {
        matches!(self, Self::Yielded)
    }

    pub(crate) const fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    pub(super) const fn held(&self) -> Option<Reservation> {
        match self {
            Self::Open(held) | Self::BackOff { held, .. } => *held,
            Self::Yielded | Self::Gone => None,
        }
    }

    pub(super) fn reserve(&mut self, reservation: Reservation) {
        *self = Self::Open(Some(reservation));
    }

    pub(super) fn released(&mut self) {
        if let Self::Open(held) | Self::BackOff { held, .. } = self {
            *held = None;
        }
    }

    /// The actuator is asked again at `until`, then for this `reason`. The reservation in force
    /// stays.
    pub(super) fn back_off(&mut self, until: Instant, reason: Option<Why>) {
        *self = match std::mem::take(self) {
            Self::Open(held) | Self::BackOff { held, .. } => Self::BackOff {
                held,
                until,
                reason,
            },
            over => over,
        };
    }

    /// Whether a back-off is over at `now`, and for which reason the actuator is to be asked then.
    pub(super) fn retry(&mut self, now: Instant) -> Option<Option<Why>> {
        match std::mem::take(self) {
            Self::BackOff {
                held,
                until,
                reason,
            } if until <= now => {
                *self = Self::Open(held);
                Some(reason)
            }
            other => {
                *self = other;
                None
            }
        }
    }

    pub(super) fn yield_to_other(&mut self) {
        *self = Self::Yielded;
    }

    pub(super) fn gone(&mut self) {
        *self = Self::Gone;
    }
}
