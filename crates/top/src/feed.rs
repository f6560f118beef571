//! From a source, which has a thread of its own, to the screen.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use onbeat_control::Progress;
use serde::de::IgnoredAny;

/// The time between two snapshots, and so between two drawings of the screen: a change is there
/// well within a second.
pub const SNAPSHOT_EVERY: Duration = Duration::from_millis(250);
/// A screen that does not keep up misses what comes then.
const MOST_WAITING: usize = 16;

/// How things stand, from whatever source. The decisions are not shown.
pub type Snapshot = Progress<IgnoredAny>;

#[derive(Debug)]
pub enum News {
    Snapshot(Snapshot),
    Trouble(String),
}

pub type Feed = Receiver<News>;

#[derive(Debug)]
pub struct Feeder(SyncSender<News>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl Feeder {
    pub fn new() -> (Self, Feed) {
        let (sender, news) = sync_channel(MOST_WAITING);
        (Self(sender), news)
    }

    pub fn send(&self, news: News) -> Result<(), Gone> {
        match self.0.try_send(news) {
            Ok(()) | Err(TrySendError::Full(_)) => Ok(()),
            Err(TrySendError::Disconnected(_)) => Err(Gone),
        }
    }
}
