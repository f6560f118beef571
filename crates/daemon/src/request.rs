//! What the threads that talk to the bus ask of the loop's thread, and what it answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_channel::{Receiver, Sender};
use onbeat_act::Priority;
use onbeat_control::Application;
use onbeat_model::Reservation;
use onbeat_sense::bpf::Waker;

use crate::account::Account;
use crate::fault::Fault;
use crate::monitor::{Figures, Item, MonitorQuery, MonitorReply};
use crate::target::Target;

/// How many requests wait for the loop at most. Further ones are refused.
const MOST_WAITING: usize = 1024;

/// A connection to the bus.
#[derive(Debug)]
pub struct Client {
    /// Its unique name, which is never used again on this bus.
    pub name: Arc<str>,
    gone: AtomicBool,
}

impl Client {
    /// One that is there.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            gone: AtomicBool::new(false),
        }
    }

    /// It left the bus: nothing is given to it any more.
    pub fn leave(&self) {
        self.gone.store(true, Ordering::SeqCst);
    }

    /// Whether it left the bus.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    /// From which connection.
    pub client: Arc<Client>,
    /// Whose that is.
    pub account: Arc<Account>,
    /// The call's number, by which the connection's calls are in order.
    pub serial: u32,
}

/// Where the answer goes.
pub type Reply<T> = Sender<Result<T, Fault>>;

/// What is asked.
#[derive(Debug)]
pub enum Request {
    /// Track a process, or one thread.
    Track {
        /// Who asks.
        caller: Caller,
        /// Whom to track.
        target: Target,
        /// The processes that it starts, too.
        children: bool,
        /// The answer.
        reply: Reply<()>,
    },
    /// No longer.
    Untrack {
        /// Who asks.
        caller: Caller,
        /// Whom to let go.
        target: Target,
        /// The answer.
        reply: Reply<()>,
    },
    /// Give a thread just this reservation.
    Reserve {
        /// Who asks.
        caller: Caller,
        /// Which thread.
        target: Target,
        /// What it is to have.
        reservation: Reservation,
        /// The answer.
        reply: Reply<()>,
    },
    /// Take it back.
    Release {
        /// Who asks.
        caller: Caller,
        /// Which thread.
        target: Target,
        /// The answer.
        reply: Reply<()>,
    },
    /// Give a thread what RealtimeKit gives, and something better if it can be had.
    Prioritise {
        /// Who asks.
        caller: Caller,
        /// Which thread.
        target: Target,
        /// What RealtimeKit would give it.
        priority: Priority,
        /// The answer.
        reply: Reply<()>,
    },
    /// Give every thread back what it had before it asked for a priority.
    Reset {
        /// The answer.
        reply: Reply<()>,
    },
    /// Which threads there are.
    List {
        /// Who asks: he sees his own, root all.
        caller: Caller,
        /// The answer.
        reply: Reply<Vec<Item>>,
    },
    /// Which applications those work for.
    ListApplications {
        /// The caller, who sees those of his own threads; root sees all.
        caller: Caller,
        /// The answer.
        reply: Reply<Vec<Application>>,
    },
    /// How things stand, and what happened since.
    Look {
        /// Who asks: he sees his own, root all.
        caller: Caller,
        /// What is wanted.
        query: MonitorQuery,
        /// The answer.
        reply: Reply<MonitorReply>,
    },
    /// How much there is of everything.
    Count {
        /// Who asks.
        caller: Caller,
        /// The answer.
        reply: Reply<Figures>,
    },
    /// Read the configuration anew.
    Reload {
        /// The answer: what takes effect only when the service is started anew.
        reply: Reply<Vec<&'static str>>,
    },
    /// A connection is gone.
    Left(Arc<str>),
    /// The bus is gone, or has turned us away: nobody can ask any more, nor be heard leaving.
    BusGone,
}

/// Answers, unless the caller waits no longer.
pub(crate) fn answer<T>(reply: &Reply<T>, what: Result<T, Fault>) {
    let _ = reply.try_send(what);
}

/// Sends requests to the loop's thread.
#[derive(Clone, Debug)]
pub struct RequestSender {
    requests: Sender<Request>,
    waker: Waker,
}

impl RequestSender {
    /// A sender, and the receiver of its requests.
    #[must_use]
    pub fn new(waker: Waker) -> (Self, Receiver<Request>) {
        let (requests, receiver) = async_channel::bounded(MOST_WAITING);
        (Self { requests, waker }, receiver)
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// What is answered; that too much is asked already; that the service ends.
    pub async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, Fault> {
        let (reply, answer) = async_channel::bounded(1);
        self.requests.try_send(request(reply)).map_err(|error| {
            if error.is_full() {
                Fault::TooManyCalls(
                    "too many calls wait to be answered: ask again later".to_owned(),
                )
            } else {
                ending()
            }
        })?;
        self.waker.wake();
        answer.recv().await.unwrap_or_else(|_| Err(ending()))
    }

    /// Tells what nobody waits for an answer to. Waits until there is room for it.
    pub async fn tell(&self, what: Request) {
        // If the loop is gone, so is what was held.
        let _ = self.requests.send(what).await;
        self.waker.wake();
    }
}

fn ending() -> Fault {
    Fault::Failed("onbeat is ending: ask again when it is back".to_owned())
}
