//! A thread's period: what is known of it.
//!
//! The enum holds its data, so that leaving a state drops all that belonged to it. Only the
//! functions in this file go from one state to another.
//!
//! ```text
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
//! ```
//!
//! A lock that is dormant stays with its thread through a probation, because the thread may show
//! the same period again: `end_probation` leads back to Dormant, and only without such a lock to
//! Acquiring. `leave_pipeline` drops it, and the probation goes on.

use onbeat_model::Instant;

use super::lock::Lock;
use super::probation::Terms;

/// The state of a thread's period estimation.
#[derive(Default)]
pub(super) enum Estimation {
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
pub(super) struct Probation {
    pub(super) since: Instant,
    /// The thread's terms, if they are not those of the settings.
    pub(super) terms: Option<Terms>,
    dormant: Option<Box<Lock>>,
}

/// See [`Estimation::Locked`].
pub(super) struct Locked {
    lock: Box<Lock>,
    /// The thread showed this period on probation.
    from_probation: bool,
}

impl Estimation {
    pub(super) const fn is_locked(&self) -> bool {
        matches!(self, Self::Locked(_))
    }

    pub(super) fn lock(&self) -> Option<&Lock> {
        match self {
            Self::Locked(Locked { lock, .. }) => Some(lock),
            _ => None,
        }
    }

    pub(super) fn lock_mut(&mut self) -> Option<&mut Lock> {
        match self {
            Self::Locked(Locked { lock, .. }) => Some(lock),
            _ => None,
        }
    }

    pub(super) const fn probation(&self) -> Option<&Probation> {
        match self {
            Self::Probation(probation) => Some(probation),
            _ => None,
        }
    }

    /// The lock of a thread that is silent, or was before its probation.
    pub(super) fn dormant(&self) -> Option<&Lock> {
        match self {
            Self::Dormant(lock) => Some(lock),
            Self::Probation(probation) => probation.dormant.as_deref(),
            _ => None,
        }
    }

    /// The lock, be it dormant.
    pub(super) fn any_lock_mut(&mut self) -> Option<&mut Lock> {
        match self {
            Self::Locked(Locked { lock, .. }) | Self::Dormant(lock) => Some(lock),
            Self::Probation(probation) => probation.dormant.as_deref_mut(),
            Self::Acquiring => None,
        }
    }

    pub(super) const fn is_from_probation(&self) -> bool {
        matches!(
            self,
            Self::Locked(Locked {
                from_probation: true,
                ..
            })
        )
    }

    /// Serves the thread from `since` on, on these `terms`. A thread that has a period needs none.
    pub(super) fn begin_probation(&mut self, since: Instant, terms: Option<Terms>) {
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
    pub(super) fn end_probation(&mut self) {
        *self = match std::mem::take(self) {
            Self::Probation(Probation { dormant, .. }) => {
                dormant.map_or(Self::Acquiring, Self::Dormant)
            }
            other => other,
        };
    }

    /// The thread has a period: `lock` makes its lock, from the dormant one if there is any.
    pub(super) fn lock_on(&mut self, lock: impl FnOnce(Option<Box<Lock>>) -> Box<Lock>) {
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
    pub(super) fn rest(&mut self) {
        *self = match std::mem::take(self) {
            Self::Locked(Locked { lock, .. }) => Self::Dormant(lock),
            other => other,
        };
    }

    /// The thread has its period no longer.
    pub(super) fn lose(&mut self) {
        if self.is_locked() {
            *self = Self::Acquiring;
        }
    }

    /// The thread works no longer for the pipeline whose period it had. A probation goes on.
    pub(super) fn leave_pipeline(&mut self) {
        match self {
            Self::Probation(probation) => probation.dormant = None,
            _ => *self = Self::Acquiring,
        }
    }

    /// Nothing is heard of the thread from now on.
    pub(super) fn forget(&mut self) {
        *self = Self::Acquiring;
    }
}

#[cfg(test)]
mod tests;
