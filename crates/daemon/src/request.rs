//! The requests of the threads that talk to the bus to the loop's thread, and the answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_channel::{Receiver, Sender};
use onbeat_act::Priority;
use onbeat_control::{Application, Decision, Progress, ThreadReport};
use onbeat_model::{Instant, Reservation, Span};
use onbeat_sense::bpf::Waker;

use crate::account::Account;
use crate::fault::Fault;
use crate::publisher::Figures;
use crate::target::Target;

/// The most requests that wait for the loop. Further ones are refused. 16 turns of `IN_A_TURN`.
const MOST_WAITING: usize = 1024;

#[derive(Debug)]
pub struct Client {
    /// Its unique name, which is never used again on this bus.
    pub name: Arc<str>,
    gone: AtomicBool,
}

impl Client {
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

    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }
}

#[derive(Clone, Debug)]
pub struct Caller {
    pub client: Arc<Client>,
    pub account: Arc<Account>,
    /// The call's number, by which the connection's calls are in order.
    pub serial: u32,
}

pub type Reply<T> = Sender<Result<T, Fault>>;

/// A caller, and the task that the call is about.
#[derive(Debug)]
pub struct About {
    pub caller: Caller,
    pub target: Target,
}

/// A request, and the channel for the answer. A caller sees threads of his own; root sees all.
#[derive(Debug)]
pub enum ServiceRequest {
    /// Track a process, or one thread; if true, with the processes that it starts.
    Track(About, bool, Reply<()>),
    /// No longer.
    Untrack(About, Reply<()>),
    /// Give a thread just this reservation.
    Reserve(About, Reservation, Reply<()>),
    Release(About, Reply<()>),
    /// Have an account of this number with this reservation, or none any more, which tasks share.
    Share(Caller, u32, Option<Reservation>, Reply<()>),
    /// Have a task share it; if true, the process with all threads that it starts.
    Join(About, u32, bool, Reply<()>),
    /// What its tasks have used above ordinary priority, and what is left.
    Balance(Caller, u32, Reply<(Span, Span)>),
    /// Give a thread what RealtimeKit gives, and something better if it can be had.
    Prioritise(About, Priority, Reply<()>),
    /// Give every thread back what it had before it asked for a priority.
    Reset(Reply<()>),
    List(Caller, Reply<Vec<ThreadReport>>),
    /// Which applications those work for.
    ListApplications(Caller, Reply<Vec<Application>>),
    /// How the program to which a process belongs goes on, or all, and what happened since then.
    Progress(Caller, (Option<u32>, Instant), Reply<Progress<Decision>>),
    Count(Caller, Reply<Figures>),
    /// Read the configuration anew. The answer: what takes effect only when the service is started
    /// anew.
    Reload(Reply<Vec<&'static str>>),
    Left(Arc<str>),
    /// The bus is gone, or has turned us away: no client can ask any more, nor be heard leaving.
    BusGone,
}

pub(crate) fn answer<T>(reply: &Reply<T>, what: Result<T, Fault>) {
    let _ = reply.try_send(what);
}

#[derive(Clone, Debug)]
pub struct RequestSender {
    requests: Sender<ServiceRequest>,
    waker: Waker,
}

impl RequestSender {
    pub fn new(waker: Waker) -> (Self, Receiver<ServiceRequest>) {
        let (requests, receiver) = async_channel::bounded(MOST_WAITING);
        (Self { requests, waker }, receiver)
    }

    /// Asks, and waits for the answer.
    /// Fails with the fault that is answered, if too many calls wait already, or if the service
    /// ends.
    pub async fn ask<T>(
        &self,
        request: impl FnOnce(Reply<T>) -> ServiceRequest,
    ) -> Result<T, Fault> {
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

    pub async fn tell(&self, what: ServiceRequest) {
        // If the loop is gone, so is what was held.
        let _ = self.requests.send(what).await;
        self.waker.wake();
    }
}

fn ending() -> Fault {
    Fault::Failed("onbeat is ending: ask again when it is back".to_owned())
}
