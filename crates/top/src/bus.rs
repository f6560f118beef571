//! The service as a source: org.onbeat.Monitor1, over D-Bus.

use std::collections::HashMap;
use std::time::{Duration, Instant as Clock};

use onbeat_control::{Application, DoneJob};
use onbeat_model::{Bandwidth, Instant, Name, Reservation, Span, Task, TaskId};
use zbus::blocking::{Connection, connection};
use zbus::zvariant::OwnedValue;

use crate::feed::{Feeder, News, WantedThreads};
use crate::snapshot::SNAPSHOT_EVERY;
use crate::{Model, Snapshot, State, ThreadSnapshot};

const NAME: &str = "org.onbeat.Manager1";
const PATH: &str = "/org/onbeat/Manager1";
const INTERFACE: &str = "org.onbeat.Monitor1";
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval between attempts to reconnect to the service.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// The service needs a while for the answer about more threads than this, and is asked more
/// rarely...
const FEW_THREADS: usize = 200;
/// ... down to once in this number of usual pauses: a change is to be seen within a second.
const LONGEST_PAUSE: usize = 3;
const MOST_THREADS: usize = 256;

type PropertyMap = HashMap<String, OwnedValue>;
type JobLists = Vec<(u32, Vec<(u64, u64, u64, bool)>)>;

#[derive(Debug)]
pub struct ServiceConnection {
    connection: Connection,
    since: Instant,
}

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("cannot connect to the system bus: {0}")]
    Bus(zbus::Error),
    #[error("the service does not run (systemctl start onbeat)")]
    NotThere,
    #[error("the service does not answer: {0}")]
    Silent(zbus::Error),
}

impl ServiceError {
    #[must_use]
    pub fn of(error: zbus::Error) -> Self {
        const GONE: [&str; 2] = [
            "org.freedesktop.DBus.Error.ServiceUnknown",
            "org.freedesktop.DBus.Error.NameHasNoOwner",
        ];
        match &error {
            zbus::Error::MethodError(name, ..) if GONE.contains(&name.as_str()) => Self::NotThere,
            _ => Self::Silent(error),
        }
    }
}

impl ServiceConnection {
    /// Connects to the system bus, or where DBUS_SYSTEM_BUS_ADDRESS says.
    pub fn connect() -> Result<Self, ServiceError> {
        let builder = connection::Builder::system().map_err(ServiceError::Bus)?;
        let connection = builder.method_timeout(PATIENCE).build();
        Ok(Self {
            connection: connection.map_err(ServiceError::Bus)?,
            since: Instant::ZERO,
        })
    }

    pub fn look(&mut self, wanted: &WantedThreads) -> Result<Snapshot, ServiceError> {
        zbus::block_on(self.see(wanted))
    }

    /// The same for a caller that waits for something else, too.
    pub async fn see(&mut self, wanted: &WantedThreads) -> Result<Snapshot, ServiceError> {
        let jobs_of: Vec<u32> = wanted.jobs_of.iter().copied().take(MOST_THREADS).collect();
        // Nobody's wakeups.
        let question = (self.since.as_ns(), jobs_of, 0_u32);
        let reply = self
            .connection
            .inner()
            .call_method(Some(NAME), PATH, Some(INTERFACE), "Look", &question)
            .await
            .map_err(ServiceError::of)?;
        let body = reply.body();
        let (now, bandwidth, threads, jobs, _) = body
            .deserialize::<(u64, (f64, f64), Vec<PropertyMap>, JobLists, Vec<u64>)>()
            .map_err(ServiceError::Silent)?;
        self.since = Instant::from_ns(now);
        let mut news: HashMap<u32, Vec<DoneJob>> = jobs
            .into_iter()
            .map(|(tid, jobs)| (tid, jobs.into_iter().map(done).collect()))
            .collect();
        let seen = threads.iter().map(|properties| {
            let mut seen = seen(properties);
            seen.news = news.remove(&seen.task.id.tid).unwrap_or_default();
            seen
        });
        let applications = self.applications().await?;
        Ok(Snapshot {
            at: self.since,
            reserved: Bandwidth::from_cpus(bandwidth.0),
            total: Bandwidth::from_cpus(bandwidth.1),
            applications,
            threads: seen.collect(),
        })
    }
}

impl ServiceConnection {
    async fn applications(&self) -> Result<Vec<Application>, ServiceError> {
        let reply = self
            .connection
            .inner()
            .call_method(Some(NAME), PATH, Some(NAME), "ListApplications", &())
            .await
            .map_err(ServiceError::of)?;
        let body = reply.body();
        let applications = body.deserialize::<Vec<PropertyMap>>();
        let applications = applications.map_err(ServiceError::Silent)?;
        Ok(applications.iter().map(application).collect())
    }

    /// Lets `model` hear how things stand, and again after `pause`, with all jobs that the service
    /// still knows.
    pub fn look_twice(&mut self, model: &mut Model, pause: Duration) -> Result<(), ServiceError> {
        model.update(News::Snapshot(self.look(&WantedThreads::default())?));
        std::thread::sleep(pause);
        self.since = Instant::ZERO;
        let wanted = model.wanted(MOST_THREADS);
        model.update(News::Snapshot(self.look(&wanted)?));
        Ok(())
    }
}

/// Feeds snapshots of `service` until the screen is gone; reconnects if the service goes away.
pub fn follow(mut service: ServiceConnection, feeder: &Feeder) {
    loop {
        let began = Clock::now();
        let (news, pause) = match service.look(&feeder.wanted()) {
            Ok(snapshot) => {
                let pause = pause_after(snapshot.threads.len());
                (News::Snapshot(snapshot), pause)
            }
            Err(error) => {
                if let Ok(anew) = ServiceConnection::connect() {
                    service = anew;
                }
                (News::Trouble(error.to_string()), TRY_AGAIN)
            }
        };
        if feeder.send(news).is_err() {
            return;
        }
        std::thread::sleep(pause.saturating_sub(began.elapsed()));
    }
}

fn pause_after(threads: usize) -> Duration {
    let times = (threads / FEW_THREADS).clamp(1, LONGEST_PAUSE);
    SNAPSHOT_EVERY.saturating_mul(u32::try_from(times).unwrap_or(1))
}

fn done((ended, response, executed, missed): (u64, u64, u64, bool)) -> DoneJob {
    DoneJob {
        ended: Instant::from_ns(ended),
        response: Span::from_ns(response),
        executed: Span::from_ns(executed),
        missed,
    }
}

/// Named values. One that is missing, or of another type, is nothing: an older service lacks it.
struct NamedValues<'a>(&'a PropertyMap);

impl NamedValues<'_> {
    fn number(&self, name: &str) -> u64 {
        let value = self.0.get(name);
        value
            .and_then(|value| u64::try_from(value).ok())
            .unwrap_or(0)
    }

    fn small(&self, name: &str) -> Option<u32> {
        u32::try_from(self.0.get(name)?).ok()
    }

    fn share(&self, name: &str) -> f64 {
        let value = self.0.get(name);
        value
            .and_then(|value| f64::try_from(value).ok())
            .unwrap_or(0.0)
    }

    fn text(&self, name: &str) -> &str {
        let value = self.0.get(name);
        value
            .and_then(|value| <&str>::try_from(value).ok())
            .unwrap_or("")
    }

    fn span(&self, name: &str) -> Span {
        Span::from_ns(self.number(name))
    }
}

fn application(properties: &PropertyMap) -> Application {
    let told = NamedValues(properties);
    let bandwidth = |name: &str| Bandwidth::from_cpus(told.share(name));
    Application {
        pid: told.small("pid").unwrap_or(0),
        comm: Name::from(told.text("comm")),
        members: told.number("members"),
        living: told.number("living"),
        by_reservation: told.number("by-reservation"),
        by_nice: told.number("by-nice"),
        refused: told.number("refused"),
        jobs: told.number("jobs"),
        missed: told.number("missed"),
        executed: told.span("executed-ns"),
        bandwidth_used: bandwidth("bandwidth-used"),
        bandwidth_reserved: bandwidth("bandwidth-reserved"),
    }
}

fn seen(properties: &PropertyMap) -> ThreadSnapshot {
    let told = NamedValues(properties);
    let number = |name: &str| told.number(name);
    let small = |name: &str| told.small(name);
    let text = |name: &str| told.text(name);
    let span = |name: &str| told.span(name);
    let held = Reservation::new(
        span("runtime-ns"),
        span("deadline-ns"),
        span("reserved-period-ns"),
    );
    let held = held.ok();
    ThreadSnapshot {
        task: Task {
            id: TaskId {
                tid: small("thread").unwrap_or(0),
                started_ticks: number("started-ticks"),
            },
            pid: small("process").unwrap_or(0),
            comm: Name::from(text("name")),
        },
        application: small("application").unwrap_or(0),
        user: small("user"),
        state: State::named(text("state")).unwrap_or(State::Watched),
        period: Some(span("period-ns")).filter(|period| !period.is_zero()),
        confidence: told.share("confidence"),
        held,
        jobs: number("jobs"),
        missed: number("missed"),
        counted_from: Some(Instant::from_ns(number("counted-from-ns")))
            .filter(|from| *from > Instant::ZERO),
        exhaustions: number("exhaustions"),
        bursts: number("bursts"),
        executed: span("executed-ns"),
        path: text("path").to_owned(),
        why: text("why").to_owned(),
        refusal: text("refusal").to_owned(),
        news: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_are_asked_for_more_rarely_but_more_often_than_once_a_second() {
        for (threads, ms) in [
            (0, 250),
            (399, 250),
            (400, 500),
            (1000, 750),
            (100_000, 750),
        ] {
            assert_eq!(pause_after(threads), Duration::from_millis(ms), "{threads}");
        }
    }
}
