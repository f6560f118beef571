//! Reads the configuration anew away from the loop, on a thread of its own: it names users and
//! groups, and a database of users may not answer for long.

use async_channel::{Receiver, Sender};
use onbeat_sense::bpf::Waker;

use crate::request::Reply;

type WaitingClients = Vec<Reply<Vec<&'static str>>>;

#[derive(Debug)]
pub(crate) struct Reload<T> {
    ask: Sender<()>,
    outcome: Receiver<T>,
    /// A read is to begin, and these clients wait for it.
    wanted: Option<WaitingClients>,
    /// A read has begun, and these clients wait for it.
    under_way: Option<WaitingClients>,
}

impl<T: Send + 'static> Reload<T> {
    /// Starts the thread, with the priority that the caller has now. It wakes the loop when it has
    /// read.
    pub(crate) fn new(read: impl Fn() -> T + Send + 'static, waker: Waker) -> Self {
        let (ask, asked) = async_channel::bounded(1);
        let (tell, outcome) = async_channel::bounded(1);
        let serve = move || {
            while asked.recv_blocking().is_ok() {
                // The service may have ended meanwhile.
                let _ = tell.send_blocking(read());
                waker.wake();
            }
        };
        let thread = std::thread::Builder::new().name("configuration".to_owned());
        if let Err(error) = thread.spawn(serve) {
            tracing::error!("cannot start a thread: {error}");
        }
        Self {
            ask,
            outcome,
            wanted: None,
            under_way: None,
        }
    }

    /// It is to be read, as it is from now on.
    pub(crate) fn want(&mut self, waiting: WaitingClients) {
        self.wanted.get_or_insert_default().extend(waiting);
    }

    /// Begins to read, if that is wanted and no other read has to end first. Returns what was read
    /// since this was last called, and the clients that wait for it.
    pub(crate) fn turn(&mut self) -> Option<(T, WaitingClients)> {
        let read = self.outcome.try_recv().ok();
        let done = read.map(|read| (read, self.under_way.take().unwrap_or_default()));
        if self.under_way.is_none() && self.wanted.is_some() && self.ask.try_send(()).is_ok() {
            self.under_way = self.wanted.take();
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_loop_goes_on_while_a_read_hangs_and_who_asks_meanwhile_has_a_read_of_his_own() {
        let (let_go, held) = mpsc::channel();
        let mut reload = Reload::new(move || held.recv().unwrap(), Waker::new().unwrap());
        assert!(reload.turn().is_none());
        let (first, _asked) = async_channel::bounded(1);
        reload.want(vec![first]);
        assert!(reload.turn().is_none());
        let (second, _asked) = async_channel::bounded(1);
        reload.want(vec![second.clone()]);
        reload.want(vec![second]);
        assert!(reload.turn().is_none());
        let mut after = |number: u32| {
            let_go.send(number).unwrap();
            loop {
                if let Some((read, waiting)) = reload.turn() {
                    break (read, waiting.len());
                }
                std::thread::yield_now();
            }
        };
        assert_eq!(after(1), (1, 1));
        assert_eq!(after(2), (2, 2));
        assert!(reload.turn().is_none());
    }
}
