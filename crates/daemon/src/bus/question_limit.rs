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

/// A question that is open until this is dropped.
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

    /// One more about the user `uid`, if there is room for it now.
    pub(super) fn try_open(&self, uid: u32) -> Option<OpenQuestion> {
        let his = self.of(uid).try_acquire_arc()?;
        let ours = self.all.try_acquire_arc()?;
        Some(OpenQuestion {
            _his: his,
            _ours: ours,
        })
    }

    /// The same, as soon as there is room. A user with too many open waits for their own.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_has_few_questions_open_and_all_together_some_more() {
        let questions = QuestionLimit::new(2, 5);
        let mut open: Vec<OpenQuestion> =
            (0..130).filter_map(|_| questions.try_open(1000)).collect();
        assert_eq!(open.len(), 2);
        let others = (1001..1100).filter_map(|uid| questions.try_open(uid));
        assert_eq!(others.collect::<Vec<OpenQuestion>>().len(), 3);
        open.pop();
        assert!(questions.try_open(1000).is_some());
    }

    #[test]
    fn nothing_is_kept_of_whom_no_question_is_open() {
        let questions = QuestionLimit::new(2, 5);
        let open = questions.try_open(1);
        for uid in 2..100 {
            drop(questions.try_open(uid));
        }
        assert!(questions.by_user.lock().unwrap().len() <= 2);
        drop(open);
    }

    #[test]
    fn who_waits_has_his_turn_when_another_question_of_his_is_answered() {
        let questions = QuestionLimit::new(1, 5);
        let open = questions.try_open(1);
        let waits = zbus::block_on(futures_lite::future::poll_once(questions.open(1)));
        assert!(waits.is_none());
        drop(open);
        zbus::block_on(questions.open(1));
    }
}
