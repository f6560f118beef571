//! How many questions to polkit are open at a time: the bus lets one connection wait for 128
//! answers, and one user's open questions (a password that is never typed) must leave room for
//! those of all others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_lock::{Semaphore, SemaphoreGuardArc};

/// A kind of questions, with the most that are open for one user and for all.
#[derive(Debug)]
pub(super) struct QuestionLimit {
    each: usize,
    all: Arc<Semaphore>,
    by_user: Mutex<HashMap<u32, Arc<Semaphore>>>,
}

#[derive(Debug)]
pub(super) struct OpenQuestion {
    _his: SemaphoreGuardArc,
    _ours: SemaphoreGuardArc,
}

impl QuestionLimit {
    pub(super) fn new(each: usize, all: usize) -> Self {
        Self {
            each,
            all: Arc::new(Semaphore::new(all)),
            by_user: Mutex::default(),
        }
    }

    pub(super) fn try_open(&self, uid: u32) -> Option<OpenQuestion> {
        let his = self.of(uid).try_acquire_arc()?;
        let ours = self.all.try_acquire_arc()?;
        Some(OpenQuestion {
            _his: his,
            _ours: ours,
        })
    }

    /// Waits until there is room. A user with too many open waits for their own.
    pub(super) async fn open(&self, uid: u32) -> OpenQuestion {
        OpenQuestion {
            _his: self.of(uid).acquire_arc().await,
            _ours: self.all.acquire_arc().await,
        }
    }

    fn of(&self, uid: u32) -> Arc<Semaphore> {
        let mut by_user = self.by_user.lock().unwrap_or_else(PoisonError::into_inner);
        // Users without an open question are forgotten.
        by_user.retain(|other, own| *other == uid || Arc::strong_count(own) > 1);
        let new = || Arc::new(Semaphore::new(self.each));
        Arc::clone(by_user.entry(uid).or_insert_with(new))
    }
}
