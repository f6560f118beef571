//! Between a source, which has a thread of its own, and the screen: news one way, what is wanted
//! the other.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Snapshot;

/// A screen that does not keep up misses what comes then.
const MOST_WAITING: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedThreads {
    pub jobs_of: BTreeSet<u32>,
}

#[derive(Debug)]
pub enum News {
    Snapshot(Snapshot),
    Trouble(String),
}

#[derive(Debug)]
pub struct Feed {
    news: Receiver<News>,
    wanted: Arc<Mutex<WantedThreads>>,
}

#[derive(Debug)]
pub struct Feeder {
    news: SyncSender<News>,
    wanted: Arc<Mutex<WantedThreads>>,
}

impl Feed {
    #[must_use]
    pub fn new() -> (Feeder, Self) {
        let (sender, news) = sync_channel(MOST_WAITING);
        let wanted = Arc::default();
        let feeder = Feeder {
            news: sender,
            wanted: Arc::clone(&wanted),
        };
        (feeder, Self { news, wanted })
    }

    pub(crate) fn next(&self) -> Result<Option<News>, Gone> {
        match self.news.try_recv() {
            Ok(news) => Ok(Some(news)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Gone),
        }
    }

    pub(crate) fn want(&self, wanted: WantedThreads) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
    }
}

impl Feeder {
    #[must_use]
    pub fn wanted(&self) -> WantedThreads {
        self.wanted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub fn send(&self, news: News) -> Result<(), Gone> {
        match self.news.try_send(news) {
            Ok(()) | Err(TrySendError::Full(_)) => Ok(()),
            Err(TrySendError::Disconnected(_)) => Err(Gone),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;
