//! A live view of a loop of this process: the screen has a thread of its own, which is told now and
//! then how things stand. The loop does not wait for it.

use std::io;
use std::thread::JoinHandle;

use onbeat_control::{Controller, Next};
use onbeat_model::{Actuator, Instant, Span};
use onbeat_top::{Feeder, Model, News, SNAPSHOT_EVERY, ScreenLook, show};

pub(crate) struct LiveView {
    model: Option<Model>,
    screen: Option<(Feeder, JoinHandle<io::Result<()>>)>,
    looked: Instant,
}

impl LiveView {
    /// One who sees `model`, from the first turn of the loop on.
    pub(crate) const fn new(model: Model) -> Self {
        Self {
            model: Some(model),
            screen: None,
            looked: Instant::ZERO,
        }
    }

    /// Shows how things stand, if it is time to. Says stop once he has seen enough.
    pub(crate) fn look<A: Actuator>(
        &mut self,
        controller: &mut Controller<A>,
        now: Instant,
    ) -> Next {
        if let Some(model) = self.model.take() {
            self.screen = Some(start(model));
        }
        let Some((feeder, screen)) = &self.screen else {
            return Next::Stop;
        };
        if screen.is_finished() {
            return Next::Stop;
        }
        if now.since(self.looked) >= Span::from_ns(SNAPSHOT_EVERY.as_nanos() as u64) {
            let threads = controller.threads(now).collect();
            let applications = controller.applications(now);
            let snapshot = controller.progress(threads, applications, (self.looked, now));
            self.looked = now;
            if feeder.send(News::Snapshot(snapshot)).is_err() {
                return Next::Stop;
            }
        }
        Next::Continue
    }

    pub(crate) fn end(self) -> io::Result<()> {
        let Some((feeder, screen)) = self.screen else {
            return Ok(());
        };
        drop(feeder);
        let gone = |_| Err(io::Error::other("the screen's thread failed"));
        screen.join().unwrap_or_else(gone)
    }
}

fn start(mut model: Model) -> (Feeder, JoinHandle<io::Result<()>>) {
    let (feeder, feed) = Feeder::new();
    let look = ScreenLook::of_environment();
    let screen = std::thread::spawn(move || show(&mut model, &feed, &look, || false));
    (feeder, screen)
}
