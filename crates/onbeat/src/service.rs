//! The system service, which is asked to do what this process may not do itself.
//!
//! A connection to the bus holds the request: when onbeat ends, however it ends, the service gives
//! everything back. A service that was started anew knows nothing of it, and is asked again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use async_io::Async;
use onbeat_act::task;
use onbeat_control::{Application, DoneJob, Present, Progress, Report, Sums, ThreadReport};
use onbeat_model::{Instant as Now, Reservation, Span, TaskId};
use onbeat_top::{ServiceError, connect, harmless, progress};
use serde::Serialize;
use serde_json::Value as Json;
use zbus::blocking::Connection;
use zbus::zvariant::Value;

use crate::cli::KeepOptions;
use crate::commands::keep::write_report;
use crate::history::{JobColumns, ThreadHistory};
use crate::run_table;
use onbeat_command::output::{Output, create};
use onbeat_command::signals::Signals;

const NAME: &str = "org.onbeat.Manager1";
/// A service that has not answered by then does not.
const PATIENCE: Duration = Duration::from_secs(30);
const PACE: Duration = Duration::from_secs(1);
const PACE_OF_JOBS: Duration = Duration::from_millis(250);
/// The decisions and the threads with jobs that a report has at most.
const MOST_DECISIONS: usize = 10_000;
const MOST_THREADS: usize = 256;

#[zbus::proxy(
    interface = "org.onbeat.Manager1",
    default_service = "org.onbeat.Manager1",
    default_path = "/org/onbeat/Manager1",
    gen_blocking = false
)]
trait Manager {
    fn track(&self, task: u32, options: HashMap<&str, Value<'_>>) -> zbus::Result<()>;
    fn reserve(&self, thread: u32, runtime: u64, deadline: u64, period: u64) -> zbus::Result<()>;
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ClientRequest {
    /// To keep a process on the beat, with those that it starts or without.
    Track { process: TaskId, children: bool },
    Reserve {
        thread: TaskId,
        reservation: Reservation,
    },
}

#[derive(Clone, Debug)]
struct Asked {
    wish: ClientRequest,
    by: Option<String>,
    refused: String,
}

pub(crate) struct ClientSession {
    connection: Connection,
    asked: Vec<Asked>,
    /// No service is there to be asked.
    is_alone: bool,
    /// When a program that was asked for was last seen to have a thread.
    is_seen: bool,
    /// Each thread with a period as it was last seen.
    seen: BTreeMap<TaskId, ThreadReport>,
    /// Each application that these work for, with its sums when it was last seen.
    applications: BTreeMap<u32, Application>,
    files: Files,
    told: BTreeSet<String>,
    began: Now,
    next_look: Instant,
    quiet: bool,
}

/// The files that the user wants, and what they are made of.
#[derive(Default)]
struct Files {
    report: Option<Output>,
    log: Option<BufWriter<File>>,
    jobs: BTreeMap<TaskId, JobColumns>,
    decisions: VecDeque<Json>,
    /// From when on jobs are wanted, and until when decisions are known.
    began: Now,
    known_until: Now,
}

#[derive(Serialize)]
struct ServedReport<'a> {
    #[serde(flatten)]
    report: &'a Report,
    history: Vec<ThreadHistory>,
    decisions: &'a VecDeque<Json>,
}

impl ClientSession {
    /// Connects to the system bus, or where DBUS_SYSTEM_BUS_ADDRESS says, and opens the files that
    /// are wanted. Signals are to be blocked before: it starts threads.
    pub(crate) fn new(options: Option<&KeepOptions>) -> anyhow::Result<Self> {
        let connection =
            connect(PATIENCE).context("cannot reach the service (start it with 'sudo systemctl enable --now onbeat', or use sudo)")?;
        has_the_bus_numbers(&connection)?;
        let log = options.and_then(|options| options.files.log.as_deref());
        let report = options.and_then(|options| options.files.report.as_deref());
        let now = onbeat_kernel::clock::now();
        Ok(Self {
            connection,
            asked: Vec::new(),
            is_alone: false,
            is_seen: false,
            seen: BTreeMap::new(),
            applications: BTreeMap::new(),
            files: Files {
                log: log.map(create).transpose()?,
                report: Output::of(report)?,
                began: now,
                known_until: now,
                ..Files::default()
            },
            told: BTreeSet::new(),
            began: now,
            next_look: Instant::now(),
            quiet: options.is_some_and(|options| options.quiet),
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
        let pace = if self.files.report.is_some() {
            PACE_OF_JOBS
        } else {
            PACE
        };
        self.next_look = Instant::now() + pace;
        self.follow_bus();
        // Without it, the next look tries again.
        let _ = unless_one_comes(signals, pin!(self.look()));
    }

    async fn look(&mut self) {
        self.follow_service().await;
        // The service may hear of what happened a while later.
        let since = self.files.known_until - Span::from_secs(1);
        let mut is_seen = false;
        for place in 0..self.asked.len() {
            let Some(process) = self.asked.get(place).map(|one| one.wish.task().tid) else {
                break;
            };
            let Ok(progress) = progress(&self.connection, process, since).await else {
                return;
            };
            is_seen |= !progress.applications.is_empty();
            self.take_in(progress);
        }
        self.is_seen = is_seen;
    }

    fn take_in(&mut self, progress: Progress<Json>) {
        for ThreadReport {
            task,
            served,
            present,
            ..
        } in &progress.threads
        {
            if let Some(kind) = &present.refusal_kind
                && self.told.insert(kind.clone())
            {
                let why = served.refusal.as_ref().unwrap_or(&present.why);
                self.say(&format!("{} ({}): {why}", task.comm, task.id));
            }
        }
        let applications = progress.applications.into_iter();
        self.applications
            .extend(applications.map(|one| (one.pid, one)));
        let threads = progress.threads.iter();
        let periods = threads.filter_map(|one| Some((one.task.id, one.period?)));
        let periods: BTreeMap<TaskId, Span> = periods.collect();
        self.files
            .take_in(progress.jobs, &periods, progress.decisions);
        for mut thread in progress.threads {
            if thread.period.is_some() {
                thread.present = Present::default();
                self.seen.insert(thread.task.id, thread);
            }
        }
    }

    /// A bus that was started anew knows no client.
    fn follow_bus(&mut self) {
        if self.connection.is_closed()
            && let Ok(connection) = connect(PATIENCE)
        {
            self.connection = connection;
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

    fn say(&self, text: &str) {
        if !self.quiet {
            eprintln!("{}", message(text));
        }
    }

    pub(crate) fn is_any_alive(&self) -> bool {
        self.is_seen
            || self.asked.iter().any(|asked| asked.wish.is_alive())
            || self.seen.keys().any(|thread| task::is_alive(*thread))
    }

    /// Prints the table, and writes the report: how things stood when they were last looked at.
    pub(crate) fn close(mut self) -> anyhow::Result<()> {
        let mut threads: Vec<ThreadReport> = self.seen.into_values().collect();
        threads.sort_by_key(|thread| Reverse(thread.executed));
        let applications: Vec<Application> = self.applications.into_values().collect();
        let members = applications.iter().map(|one| one.members).sum::<u64>();
        let report = Report {
            left_alone: members.saturating_sub(threads.len() as u64),
            protected: applications.iter().map(|one| one.by_nice).sum(),
            applications,
            threads,
            earlier: Sums::default(),
            lost_events: 0,
            speeds: Vec::new(),
            began: self.began,
            elapsed: onbeat_kernel::clock::now().since(self.began),
        };
        if !self.quiet {
            eprint!("{}", run_table::of(&report, None, None));
        }
        self.files.write(&report)
    }
}

impl Files {
    fn take_in(
        &mut self,
        jobs: Vec<(TaskId, Vec<DoneJob>)>,
        periods: &BTreeMap<TaskId, Span>,
        mut decisions: Vec<Json>,
    ) {
        let at = |decision: &Json| {
            decision
                .get("at_ns")
                .and_then(Json::as_u64)
                .map(Now::from_ns)
        };
        decisions.retain(|decision| at(decision) > Some(self.known_until));
        let last = decisions.iter().filter_map(at).max();
        self.known_until = last.unwrap_or(self.known_until);
        if let Some(log) = &mut self.log {
            // A full disk shows when it is closed.
            let lines = decisions
                .iter()
                .try_for_each(|decision| writeln!(log, "{decision}"));
            let _ = lines.and_then(|()| log.flush());
        }
        if self.report.is_none() {
            return;
        }
        for (task, jobs) in jobs {
            let is_known = self.jobs.contains_key(&task);
            if let Some(period) = periods.get(&task)
                && (is_known || self.jobs.len() < MOST_THREADS)
            {
                let columns = self.jobs.entry(task).or_default();
                let known = columns.last_ended().unwrap_or(self.began);
                let new = jobs.iter().filter(|job| job.ended > known);
                new.for_each(|job| columns.push(job, *period));
            }
        }
        // The report lists those on reservations alone.
        let on_reservations = |decision: &Json| decision.get("old").is_some();
        self.decisions
            .extend(decisions.into_iter().filter(on_reservations));
        let too_many = self.decisions.len().saturating_sub(MOST_DECISIONS);
        self.decisions.drain(..too_many);
    }

    fn write(&mut self, report: &Report) -> anyhow::Result<()> {
        if let Some(log) = &mut self.log {
            log.flush().context("cannot write the log")?;
        }
        let Some(output) = self.report.take() else {
            return Ok(());
        };
        let history = std::mem::take(&mut self.jobs).into_iter();
        let history = history.map(|(id, recent_jobs)| ThreadHistory {
            id,
            recent_jobs,
            uncounted_jobs: JobColumns::default(),
            wakeups_ns: Vec::new(),
        });
        let served = ServedReport {
            report,
            history: history.collect(),
            decisions: &self.decisions,
        };
        write_report(output, &served)
    }
}

impl ClientRequest {
    const fn task(&self) -> TaskId {
        let (Self::Track { process: task, .. } | Self::Reserve { thread: task, .. }) = *self;
        task
    }

    fn is_alive(&self) -> bool {
        task::is_alive(self.task())
    }
}

/// The service means tasks by the numbers that they have for the bus. In a container with numbers
/// of its own, a number here is another task there.
fn has_the_bus_numbers(connection: &Connection) -> anyhow::Result<()> {
    let name = connection.unique_name().context("the bus gave no name")?;
    let bus = zbus::blocking::fdo::DBusProxy::new(connection)?;
    let there = bus.get_connection_unix_process_id(name.into())?;
    let here = std::process::id();
    if there == here {
        return Ok(());
    }
    Err(anyhow!(
        "process {here} is {there} for the service, because this container has process numbers of its own: start the \
         container with those of the host (--pid=host; hostPID: true)"
    ))
}

async fn owner(connection: &Connection) -> Option<String> {
    let bus = zbus::fdo::DBusProxy::new(connection.inner()).await.ok()?;
    let owner = bus.get_name_owner(NAME.try_into().ok()?).await.ok()?;
    Some(owner.to_string())
}

async fn call(connection: &Connection, wish: ClientRequest) -> anyhow::Result<()> {
    let manager = ManagerProxy::new(connection.inner()).await?;
    let answer = match wish {
        ClientRequest::Track { process, children } => {
            let options = HashMap::from([("children", Value::from(children))]);
            manager.track(process.tid, options).await
        }
        ClientRequest::Reserve {
            thread,
            reservation: it,
        } => {
            let [runtime, deadline, period] = [it.runtime(), it.deadline(), it.period()];
            let (runtime, deadline) = (runtime.as_ns(), deadline.as_ns());
            manager
                .reserve(thread.tid, runtime, deadline, period.as_ns())
                .await
        }
    };
    answer.map_err(in_words)
}

/// A message as the terminal gets it: names in it are other people's choice.
fn message(text: &str) -> String {
    format!("onbeat: {}", harmless(text))
}

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
