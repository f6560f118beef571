//! A thread's life: what is known of its period, and what is in force for it.
//!
//! Each of the two is an enum that holds its data, so that leaving a state drops all that belonged
//! to it. Only the functions in this file go from one state to another.
//!
//! ```text
//!  Estimation
//!
//!   Acquiring ───────── lock_on ─────────▶ Locked ───────┐ lock_on: the program's
//!    │ ▲ ▲ ◀──── lose, leave_pipeline ───── │ ▲ ▲ ◀──────┘ marks
//!    │ │ │                             rest │ │ └────────┐
//!    │ │ │                                  ▼ │ lock_on  │
//!    │ │ └────── leave_pipeline ────────── Dormant       │ lock_on
//!    │ │                                    │ ▲          │
//!    │ │                    begin_probation ▼ │ end_probation
//!    │ └──────── end_probation ────────── Probation ─────┘
//!    └────────── begin_probation ───────────▲
//!   any ── forget ──▶ Acquiring
//!
//!  Enforcement
//!
//!   None ──── reserve ────▶ Held ──── release_failed ────▶ ReleasePending
//!    ▲ ◀───── released ───── │ ▲ ◀──────── reserve ──────── │
//!    └────────────────────── released ──────────────────────┘
//!   these three ── back_off ──▶ BackOff ── retry, in time ──▶ what is in force by then
//!   any ── reserve ──▶ Held    any ── yield_to_other ──▶ Yielded    any ── gone ──▶ Gone
//! ```
//!
//! A lock that is dormant stays with its thread through a probation, because the thread may show
//! the same period again: `end_probation` leads back to Dormant, and only without such a lock to
//! Acquiring. `leave_pipeline` drops it, and the probation goes on. In a back-off, `released` and
//! `release_failed` change what is in force, and the back-off goes on.

use onbeat_model::{Instant, Reservation};

use crate::Why;
use crate::estimation::lock::Lock;
use crate::estimation::probation::Terms;

/// What is known of a thread's period.
#[derive(Default)]
pub(crate) enum Estimation {
    /// Too little was heard, or no period is in it.
    #[default]
    Acquiring,
    /// The thread is served for a while so that it can show its period.
    Probation(Probation),
    /// The thread has a period.
    Locked(Locked),
    /// The thread had a period, and is silent.
    Dormant(Box<Lock>),
}

/// See [`Estimation::Probation`].
pub(crate) struct Probation {
    pub(crate) since: Instant,
    /// What the thread is given, if not what the settings say.
    pub(crate) terms: Option<Terms>,
    dormant: Option<Box<Lock>>,
}

/// See [`Estimation::Locked`].
pub(crate) struct Locked {
    lock: Box<Lock>,
    /// The thread showed this period on probation.
    from_probation: bool,
}

impl Locked {
    pub(crate) fn lock(&self) -> &Lock {
        &self.lock
    }
}

impl Estimation {
    pub(crate) const fn is_locked(&self) -> bool {
        matches!(self, Self::Locked(_))
    }

    pub(crate) fn lock(&self) -> Option<&Lock> {
        match self {
            Self::Locked(Locked { lock, .. }) => Some(lock),
            _ => None,
        }
    }

    pub(crate) fn lock_mut(&mut self) -> Option<&mut Lock> {
        match self {
            Self::Locked(Locked { lock, .. }) => Some(lock),
            _ => None,
        }
    }

    pub(crate) const fn probation(&self) -> Option<&Probation> {
        match self {
            Self::Probation(probation) => Some(probation),
            _ => None,
        }
    }

    /// The lock of a thread that is silent, or was before its probation.
    pub(crate) fn dormant(&self) -> Option<&Lock> {
        match self {
            Self::Dormant(lock) => Some(lock),
            Self::Probation(probation) => probation.dormant.as_deref(),
            _ => None,
        }
    }

    /// The lock, be it dormant.
    pub(crate) fn any_lock_mut(&mut self) -> Option<&mut Lock> {
        match self {
            Self::Locked(Locked { lock, .. }) | Self::Dormant(lock) => Some(lock),
            Self::Probation(probation) => probation.dormant.as_deref_mut(),
            Self::Acquiring => None,
        }
    }

    pub(crate) const fn is_from_probation(&self) -> bool {
        matches!(
            self,
            Self::Locked(Locked {
                from_probation: true,
                ..
            })
        )
    }

    /// Serves the thread from `since` on, on these `terms`. A thread that has a period needs none.
    pub(crate) fn begin_probation(&mut self, since: Instant, terms: Option<Terms>) {
        let dormant = match std::mem::take(self) {
            Self::Acquiring => None,
            Self::Dormant(lock) => Some(lock),
            other @ (Self::Probation(_) | Self::Locked(_)) => {
                *self = other;
                return;
            }
        };
        *self = Self::Probation(Probation {
            since,
            terms,
            dormant,
        });
    }

    /// The thread showed no period on probation.
    pub(crate) fn end_probation(&mut self) {
        *self = match std::mem::take(self) {
            Self::Probation(Probation { dormant, .. }) => {
                dormant.map_or(Self::Acquiring, Self::Dormant)
            }
            other => other,
        };
    }

    /// The thread has a period: `lock` makes its lock, from the dormant one if there is any.
    pub(crate) fn lock_on(&mut self, lock: impl FnOnce(Option<Box<Lock>>) -> Box<Lock>) {
        let (dormant, from_probation) = match std::mem::take(self) {
            Self::Acquiring | Self::Locked(_) => (None, false),
            Self::Probation(Probation { dormant, .. }) => (dormant, true),
            Self::Dormant(lock) => (Some(lock), false),
        };
        *self = Self::Locked(Locked {
            lock: lock(dormant),
            from_probation,
        });
    }

    /// The thread is silent: its lock waits for it.
    pub(crate) fn rest(&mut self) {
        *self = match std::mem::take(self) {
            Self::Locked(Locked { lock, .. }) => Self::Dormant(lock),
            other => other,
        };
    }

    /// The thread has its period no longer.
    pub(crate) fn lose(&mut self) {
        if self.is_locked() {
            *self = Self::Acquiring;
        }
    }

    /// The thread works for no pipeline any more, whose period it had. A probation goes on.
    pub(crate) fn leave_pipeline(&mut self) {
        match self {
            Self::Probation(probation) => probation.dormant = None,
            _ => *self = Self::Acquiring,
        }
    }

    /// Nothing is heard of the thread from now on.
    pub(crate) fn forget(&mut self) {
        *self = Self::Acquiring;
    }
}

/// What is in force for a thread, and whether the actuator can be asked for more.
#[derive(Debug)]
pub(crate) enum Enforcement {
    /// The actuator can be asked.
    Open(InForce),
    /// The actuator refused: it is asked again at `until`.
    BackOff {
        in_force: InForce,
        until: Instant,
        /// Why the thread is to have something else then, if that is known already.
        reason: Option<Why>,
    },
    /// An administrator or the program decides about the thread's scheduling, for good.
    Yielded,
    /// The thread no longer exists.
    Gone,
}

/// What the actuator has put in force.
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
    /// Why the reservation was to end.
    pub(crate) why: Why,
    /// The reservation that was to end.
    pub(crate) old: Option<Reservation>,
    /// How often the release has failed.
    pub(crate) tries: u32,
    /// When it is tried again.
    pub(crate) due: Instant,
}

impl PendingRelease {
    pub(crate) const fn new(why: Why, old: Option<Reservation>, due: Instant) -> Self {
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
    /// The actuator can be asked.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    pub(crate) const fn is_backed_off(&self) -> bool {
        matches!(self, Self::BackOff { .. })
    }

    /// Nothing can be put in force any more.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self, Self::Yielded | Self::Gone)
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

    /// The reservation in force.
    pub(crate) const fn held(&self) -> Option<Reservation> {
        match self.in_force() {
            Some(InForce::Held(held)) => Some(*held),
            _ => None,
        }
    }

    pub(crate) const fn pending_release(&mut self) -> Option<&mut PendingRelease> {
        match self.in_force_mut() {
            Some(InForce::ReleasePending(pending)) => Some(pending),
            _ => None,
        }
    }

    /// The thread has no reservation and all that it had before.
    pub(crate) const fn is_clean(&self) -> bool {
        matches!(self.in_force(), None | Some(InForce::None))
    }

    /// `reservation` is in force.
    pub(crate) fn reserve(&mut self, reservation: Reservation) {
        *self = Self::Open(InForce::Held(reservation));
    }

    /// Nothing is in force any more, and nothing is left to be given back.
    pub(crate) fn released(&mut self) {
        if let Some(in_force) = self.in_force_mut() {
            *in_force = InForce::None;
        }
    }

    /// The thread could not be given back what it had.
    pub(crate) fn release_failed(&mut self, pending: PendingRelease) {
        if let Some(in_force) = self.in_force_mut() {
            *in_force = InForce::ReleasePending(pending);
        }
    }

    /// The actuator is asked again at `until`, then for this `reason`. What is in force stays so.
    pub(crate) fn back_off(&mut self, until: Instant, reason: Option<Why>) {
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
    pub(crate) fn retry(&mut self, now: Instant) -> Option<Option<Why>> {
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

    pub(crate) fn yield_to_other(&mut self) {
        *self = Self::Yielded;
    }

    pub(crate) fn gone(&mut self) {
        *self = Self::Gone;
    }
}

#[cfg(test)]
mod tests;
