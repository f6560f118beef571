//! Messages to systemd: that the service is ready, that it is alive, that it ends.

use std::time::Duration;

use onbeat_model::{Instant, Span};
use sd_notify::NotifyState;

/// Tells systemd, as often as it wants to hear it, that the loop turns.
#[derive(Debug)]
pub(crate) struct Watchdog {
    every: Option<Span>,
    next: Instant,
}

impl Watchdog {
    /// One that tells at least twice as often as systemd wants it.
    pub(crate) fn new() -> Self {
        let half = |limit: Duration| {
            Span::from_ns(u64::try_from(limit.as_nanos() / 2).unwrap_or(u64::MAX))
        };
        Self {
            every: sd_notify::watchdog_enabled().map(half),
            next: Instant::ZERO,
        }
    }

    pub(crate) fn turned(&mut self, now: Instant) {
        if let Some(every) = self.every
            && now >= self.next
        {
            self.next = now + every;
            tell(&[NotifyState::Watchdog]);
        }
    }
}

pub(crate) fn ready() {
    tell(&[NotifyState::Ready]);
}

pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Without systemd they go nowhere; with it, a word that is lost is said again.
fn tell(what: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(what) {
        tracing::warn!("cannot notify systemd: {error}");
    }
}
