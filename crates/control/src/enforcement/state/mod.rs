//! The state of enforcement of a thread.
//!
//! The enum holds its data, so that leaving a state drops all that belonged to it. Only the
//! functions in this file go from one state to another.
//!
//! ```text
//!   None ──── reserve ────▶ Held ──── release_failed ────▶ ReleasePending
//!    ▲ ◀───── released ───── │ ▲ ◀──────── reserve ──────── │
//!    └────────────────────── released ──────────────────────┘
//!   these three ── back_off ──▶ BackOff ── retry, in time ──▶ what is in force by then
//!   any ── reserve ──▶ Held    any ── yield_to_other ──▶ Yielded    any ── gone ──▶ Gone
//! ```
//!
//! In a back-off, `released` and `release_failed` change what is in force, and the back-off goes
//! on.

use onbeat_model::{Instant, Reservation};

use crate::Why;

/// The reservation in force for a thread, and whether the actuator can be asked for more.
#[derive(Debug)]
pub(crate) enum Enforcement {
    Open(InForce),
    /// The actuator refused: it is asked again at `until`.
    BackOff {
        in_force: InForce,
        until: Instant,
        /// Why the thread is to have something else then, if that is known already.
        reason: Option<Why>,
    },
    /// Another program, an administrator or its own program decides about the thread's scheduling,
    /// for good.
    Yielded,
    Gone,
}

/// The reservation that the actuator has put in force.
#[derive(Debug)]
pub(crate) enum InForce {
    None,
    Held(Reservation),
    /// The thread has yet to be given back what it had.
    ReleasePending(PendingRelease),
}

/// A release that failed, and is tried again.
#[derive(Clone, Debug)]
pub(crate) struct PendingRelease {
    pub(super) why: Why,
    pub(super) old: Option<Reservation>,
    pub(super) tries: u32,
    pub(super) due: Instant,
}

impl PendingRelease {
    pub(super) const fn new(why: Why, old: Option<Reservation>, due: Instant) -> Self {
        Self {
            why,
            old,
            tries: 0,
            due,
        }
    }
}

impl Default for Enforcement {
    fn default() -> Self {
        Self::Open(InForce::None)
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

    const fn in_force(&self) -> Option<&InForce> {
        match self {
            Self::Open(in_force) | Self::BackOff { in_force, .. } => Some(in_force),
            Self::Yielded | Self::Gone => None,
        }
    }

    const fn in_force_mut(&mut self) -> Option<&mut InForce> {
        match self {
            Self::Open(in_force) | Self::BackOff { in_force, .. } => Some(in_force),
            Self::Yielded | Self::Gone => None,
        }
    }

    pub(super) const fn held(&self) -> Option<Reservation> {
        match self.in_force() {
            Some(InForce::Held(held)) => Some(*held),
            _ => None,
        }
    }

    pub(super) const fn pending_release(&mut self) -> Option<&mut PendingRelease> {
        match self.in_force_mut() {
            Some(InForce::ReleasePending(pending)) => Some(pending),
            _ => None,
        }
    }

    pub(crate) const fn is_clean(&self) -> bool {
        matches!(self.in_force(), None | Some(InForce::None))
    }

    pub(super) fn reserve(&mut self, reservation: Reservation) {
        *self = Self::Open(InForce::Held(reservation));
    }

    /// Nothing is in force any more, and nothing is left to be given back.
    pub(super) fn released(&mut self) {
        if let Some(in_force) = self.in_force_mut() {
            *in_force = InForce::None;
        }
    }

    pub(super) fn release_failed(&mut self, pending: PendingRelease) {
        if let Some(in_force) = self.in_force_mut() {
            *in_force = InForce::ReleasePending(pending);
        }
    }

    /// The actuator is asked again at `until`, then for this `reason`. The reservation in force
    /// stays.
    pub(super) fn back_off(&mut self, until: Instant, reason: Option<Why>) {
        *self = match std::mem::take(self) {
            Self::Open(in_force) | Self::BackOff { in_force, .. } => Self::BackOff {
                in_force,
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
                in_force,
                until,
                reason,
            } if until <= now => {
                *self = Self::Open(in_force);
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
