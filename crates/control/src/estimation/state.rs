//! A thread's period: what is known of it.
//!
//! The enum holds its data, so that leaving a state drops all that belonged to it. Only the
//! functions in this file go from one state to another.
//!
//! ```text
//!   Acquiring ───────── lock_on ─────────▶ Locked ───────┐ lock_on: the program's
//!      ▲ ◀────────────── lose ────────────── │ ▲ ◀───────┘ marks
//!      │                                rest ▼ │ lock_on
//!      └─ (any) forget, leave_pipeline      Dormant
//! ```

use super::lock::Lock;

/// The state of a thread's period estimation.
#[derive(Default)]
pub(super) enum Estimation {
    /// Too little was heard, or no period is in it.
    #[default]
    Acquiring,
    Locked(Box<Lock>),
    Dormant(Box<Lock>),
}

impl Estimation {
    pub(super) const fn is_locked(&self) -> bool {
        matches!(self, Self::Locked(_))
    }

    pub(super) fn lock(&self) -> Option<&Lock> {
        match self {
            Self::Locked(lock) => Some(lock),
            _ => None,
        }
    }

    pub(super) fn lock_mut(&mut self) -> Option<&mut Lock> {
        match self {
            Self::Locked(lock) => Some(lock),
            _ => None,
        }
    }

    pub(super) fn dormant(&self) -> Option<&Lock> {
        match self {
            Self::Dormant(lock) => Some(lock),
            _ => None,
        }
    }

    pub(super) fn any_lock_mut(&mut self) -> Option<&mut Lock> {
        match self {
            Self::Locked(lock) | Self::Dormant(lock) => Some(lock),
            Self::Acquiring => None,
        }
    }

    /// The thread has a period: `lock` makes its lock, from the dormant one if there is any.
    pub(super) fn lock_on(&mut self, lock: impl FnOnce(Option<Box<Lock>>) -> Box<Lock>) {
        let dormant = match std::mem::take(self) {
            Self::Acquiring | Self::Locked(_) => None,
            Self::Dormant(lock) => Some(lock),
        };
        *self = Self::Locked(lock(dormant));
    }

    /// The thread is silent: its lock waits for it.
    pub(super) fn rest(&mut self) {
        *self = match std::mem::take(self) {
            Self::Locked(lock) => Self::Dormant(lock),
            other => other,
        };
    }

    pub(super) fn lose(&mut self) {
        if self.is_locked() {
            self.forget();
        }
    }

    /// Nothing is known of the thread from now on, or its period was another's.
    pub(super) fn forget(&mut self) {
        *self = Self::Acquiring;
    }
}
