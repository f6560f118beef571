//! The system service, which is asked to do what this process may not do itself.
//!
//! A connection to the bus holds the request: when onbeat ends, however it ends, the service gives
//! everything back. A service that was started anew knows nothing of it, and is asked again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::poll_fn;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use async_io::Async;
use onbeat_act::task;
use onbeat_control::{Application, TimeHistogram};
use onbeat_model::{Reservation, Span, TaskId};
use onbeat_top::{ServiceConnection, ServiceError, State, ThreadSnapshot, WantedThreads, harmless};
use zbus::blocking::{Connection, connection};
use zbus::zvariant::Value;

use onbeat_command::signals::Signals;

const NAME: &str = "org.onbeat.Manager1";
const PATH: &str = "/org/onbeat/Manager1";
/// A service that has not answered by then does not.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked how things stand.
const PACE: Duration = Duration::from_secs(1);

/// The request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClientRequest {
    /// To keep a process on the beat, with those that it starts or without.
    Track {
        /// The process.
        process: TaskId,
        /// Those that it starts, too.
        children: bool,
    },
    /// To give a thread just this reservation.
    Reserve {
        /// The thread.
        thread: TaskId,
        /// The reservation.
        reservation: Reservation,
    },
}

/// A request, and the service that has granted it.
#[derive(Clone, Debug)]
struct Asked {
    wish: ClientRequest,
    /// The name of the connection of the service that did.
    by: Option<String>,
    /// Why one that was started since did not.
    refused: String,
}

/// The request, and its state.
pub(crate) struct ClientSession {
    connection: Connection,
    monitor: ServiceConnection,
    asked: Vec<Asked>,
    /// No service is there to be asked.
    is_alone: bool,
    /// Each thread as it was last seen.
    seen: BTreeMap<TaskId, ThreadSnapshot>,
    /// The response times of its jobs since.
    times: BTreeMap<TaskId, TimeHistogram>,
    /// Each application that these work for, with its sums when it was last seen.
    applications: BTreeMap<u32, Application>,
    /// The threads without a reservation of which the user was told.
    told: BTreeSet<TaskId>,
    next_look: Instant,
    quiet: bool,
}

impl ClientSession {
    /// Connects to the system bus, or where DBUS_SYSTEM_BUS_ADDRESS says. Signals are to be blocked
    /// before: it starts threads.
    pub(crate) fn nothing_yet(quiet: bool) -> anyhow::Result<Self> {
        let connection =
            connect().context("without sudo the system service acts, and it cannot be reached")?;
        has_the_bus_numbers(&connection)?;
        Ok(Self {
            connection,
            monitor: ServiceConnection::connect()?,
            asked: Vec::new(),
            is_alone: false,
            seen: BTreeMap::new(),
            times: BTreeMap::new(),
            applications: BTreeMap::new(),
            told: BTreeSet::new(),
            next_look: Instant::now(),
            quiet,
        })
    }

    /// Asks for it, and holds it. A signal that ends programs ends the wait for the answer, and is
    /// given back.
    pub(crate) fn ask(
        &mut self,
        wish: ClientRequest,
        signals: &Signals,
    ) -> anyhow::Result<ControlFlow<i32>> {
        // Before: one that is started anew in between is asked again. None: the bus starts it for
        // this call.
        let before = zbus::block_on(owner(&self.connection));
        let mut answer = pin!(call(&self.connection, wish));
        let answer = loop {
            if let Some(answer) = unless_one_comes(signals, answer.as_mut())? {
                break answer;
            }
            if let Some(signal) = signals.next_that_ends() {
                return Ok(ControlFlow::Break(signal));
            }
        };
        answer?;
        self.asked.push(Asked {
            wish,
            by: before.or_else(|| zbus::block_on(owner(&self.connection))),
            refused: String::new(),
        });
        Ok(ControlFlow::Continue(()))
    }

    /// To be called again and again: looks how things stand once a second, and asks again where the
    /// service is another one. A call without an answer before a signal comes is left for the next
    /// time.
    pub(crate) fn attend(&mut self, signals: &Signals) {
        if Instant::now() < self.next_look {
            return;
        }
        self.next_look = Instant::now() + PACE;
        self.follow_bus();
        // Without it, the next look tries again.
        let _ = unless_one_comes(signals, pin!(self.look()));
    }

    async fn look(&mut self) {
        self.follow_service().await;
        let wanted = WantedThreads {
            jobs_of: self.seen.keys().map(|thread| thread.tid).collect(),
        };
        if let Ok(snapshot) = self.monitor.see(&wanted).await {
            for seen in snapshot.threads {
                if self.is_ours(&seen) {
                    self.tell(&seen);
                    let times = self.times.entry(seen.task.id).or_default();
                    seen.news
                        .iter()
                        .for_each(|done| times.record(done.response));
                    self.seen.insert(seen.task.id, seen);
                }
            }
            for application in snapshot.applications {
                if self.threads_of(application.pid).next().is_some() {
                    self.applications.insert(application.pid, application);
                }
            }
        }
    }

    /// A bus that was started anew knows no client.
    fn follow_bus(&mut self) {
        if self.connection.is_closed()
            && let (Ok(connection), Ok(monitor)) = (connect(), ServiceConnection::connect())
        {
            self.connection = connection;
            self.monitor = monitor;
            // It gives out the same names again.
            for one in &mut self.asked {
                one.by = None;
            }
        }
    }

    async fn follow_service(&mut self) {
        let Some(owner) = owner(&self.connection).await else {
            if !std::mem::replace(&mut self.is_alone, true) {
                self.say("the service is gone: no reservations until it is back");
            }
            return;
        };
        self.is_alone = false;
        for place in 0..self.asked.len() {
            let Some(one) = self.asked.get(place) else {
                break;
            };
            // A number may be another's by now.
            if one.by.as_ref() == Some(&owner) || !one.wish.is_alive() {
                continue;
            }
            let answer = call(&self.connection, one.wish).await;
            self.answered(place, &owner, answer);
        }
    }

    /// The service that `owner` names was asked again.
    fn answered(&mut self, place: usize, owner: &str, answer: anyhow::Result<()>) {
        let Some(one) = self.asked.get_mut(place) else {
            return;
        };
        match answer {
            Ok(()) => {
                one.by = Some(owner.to_owned());
                one.refused.clear();
                self.say("the service restarted: onbeat asked it again");
            }
            Err(error) => {
                let why = error.to_string();
                if why != one.refused {
                    one.refused.clone_from(&why);
                    self.say(&format!("the service restarted: {why}"));
                }
            }
        }
    }

    /// The service lists all threads of the user.
    fn is_ours(&self, seen: &ThreadSnapshot) -> bool {
        // A program whose first thread has ended goes on in the others.
        self.seen
            .values()
            .any(|known| known.task.pid == seen.task.pid)
            || self.asked.iter().any(|asked| match asked.wish {
                ClientRequest::Track { process, children } => {
                    seen.task.pid == process.tid || children && seen.application == process.tid
                }
                ClientRequest::Reserve { thread, .. } => seen.task.id == thread,
            })
    }

    fn tell(&mut self, seen: &ThreadSnapshot) {
        let is_refused = matches!(seen.state, State::Refused | State::TakenOver);
        if !is_refused {
            self.told.remove(&seen.task.id);
        } else if !seen.why.is_empty() && self.told.insert(seen.task.id) {
            self.say(&format!(
                "{} ({}): {}",
                seen.task.comm, seen.task.id, seen.why
            ));
        }
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            eprintln!("{}", message(text));
        }
    }

    /// Whether one of the processes still runs, or a thread of theirs.
    pub(crate) fn is_any_alive(&self) -> bool {
        self.asked.iter().any(|asked| asked.wish.is_alive())
            || self.seen.keys().any(|thread| task::is_alive(*thread))
    }

    /// The applications that were kept on the beat, as they were last seen.
    pub(crate) fn applications(&self) -> impl Iterator<Item = &Application> {
        self.applications.values()
    }

    /// Half, 95% and all of the thread's jobs took no longer, as far as they were seen.
    pub(crate) fn response_times(&self, thread: TaskId) -> [Option<Span>; 3] {
        let times = self.times.get(&thread);
        [0.5, 0.95, 1.0].map(|share| times?.quantile(share))
    }

    /// The threads of one that have a period, as they were last seen.
    pub(crate) fn threads_of(&self, application: u32) -> impl Iterator<Item = &ThreadSnapshot> {
        let seen = self.seen.values();
        seen.filter(move |seen| seen.application == application && seen.period.is_some())
    }
}

impl ClientRequest {
    fn is_alive(&self) -> bool {
        let (Self::Track { process: task, .. } | Self::Reserve { thread: task, .. }) = *self;
        task::is_alive(task)
    }
}

fn connect() -> Result<Connection, ServiceError> {
    let builder = connection::Builder::system().map_err(ServiceError::Bus)?;
    let connection = builder.method_timeout(PATIENCE).build();
    connection.map_err(ServiceError::Bus)
}

/// The service means tasks by the numbers that they have for the bus. In a container with numbers
/// of its own, a number here is another task there.
fn has_the_bus_numbers(connection: &Connection) -> anyhow::Result<()> {
    const BUS: &str = "org.freedesktop.DBus";
    let name = connection.unique_name().map(|name| name.as_str());
    let name = name.unwrap_or_default();
    let answer = connection.call_method(
        Some(BUS),
        "/org/freedesktop/DBus",
        Some(BUS),
        "GetConnectionUnixProcessID",
        &name,
    )?;
    let there: u32 = answer.body().deserialize()?;
    let here = std::process::id();
    if there == here {
        return Ok(());
    }
    Err(anyhow!(
        "process {here} is {there} for the service, because this container has process numbers of its own: start the \
         container with those of the host (--pid=host; hostPID: true)"
    ))
}

/// The name of the service's connection, if it is there.
async fn owner(connection: &Connection) -> Option<String> {
    const BUS: &str = "org.freedesktop.DBus";
    let connection = connection.inner();
    let answer = connection.call_method(
        Some(BUS),
        "/org/freedesktop/DBus",
        Some(BUS),
        "GetNameOwner",
        &NAME,
    );
    answer.await.ok()?.body().deserialize().ok()
}

async fn call(connection: &Connection, wish: ClientRequest) -> anyhow::Result<()> {
    let (connection, interface) = (connection.inner(), Some(NAME));
    let answer = match wish {
        ClientRequest::Track { process, children } => {
            let options = HashMap::from([("children", Value::from(children))]);
            let asked = (process.tid, options);
            let answer = connection.call_method(interface, PATH, interface, "Track", &asked);
            answer.await
        }
        ClientRequest::Reserve {
            thread,
            reservation,
        } => {
            let times = (
                thread.tid,
                reservation.runtime().as_ns(),
                reservation.deadline().as_ns(),
                reservation.period().as_ns(),
            );
            let answer = connection.call_method(interface, PATH, interface, "Reserve", &times);
            answer.await
        }
    };
    answer.map(drop).map_err(in_words)
}

/// A message as the terminal gets it: names in it are other people's choice.
fn message(text: &str) -> String {
    format!("onbeat: {}", harmless(text))
}

/// The error of the service, or of the bus.
fn in_words(error: zbus::Error) -> anyhow::Error {
    match ServiceError::of(error) {
        ServiceError::Silent(zbus::Error::MethodError(_, Some(text), _)) => anyhow!(text),
        error @ ServiceError::NotThere => {
            anyhow!("{error}; only root can act without it")
        }
        error => error.into(),
    }
}

/// Waits for what `answer` gives, or until a signal of the process is there to be read: then there
/// is none yet.
fn unless_one_comes<A: Future>(
    signals: &Signals,
    mut answer: Pin<&mut A>,
) -> io::Result<Option<A::Output>> {
    let signal = Async::new(signals.as_fd())?;
    let mut signal = pin!(signal.readable());
    Ok(zbus::block_on(poll_fn(|context| {
        if let Poll::Ready(answer) = answer.as_mut().poll(context) {
            return Poll::Ready(Some(answer));
        }
        signal.as_mut().poll(context).map(|_| None)
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_message_tells_the_terminal_nothing() {
        assert_eq!(
            message("\x1b]0;x\x07 (7): no room"),
            "onbeat: ·]0;x· (7): no room"
        );
    }
}
