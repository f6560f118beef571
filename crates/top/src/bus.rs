//! The service as a source: org.onbeat.Monitor1, over D-Bus.

use std::time::{Duration, Instant as Clock};

use onbeat_control::Progress;
use onbeat_model::{Instant, Span};
use serde::de::DeserializeOwned;
use zbus::blocking::{Connection, connection};

use crate::Model;
use crate::feed::{Feeder, News, SNAPSHOT_EVERY, Snapshot};

const NAME: &str = "org.onbeat.Manager1";
const PATH: &str = "/org/onbeat/Manager1";
const INTERFACE: &str = "org.onbeat.Monitor1";
const PATIENCE: Duration = Duration::from_secs(5);
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// The service needs a while for the answer about more threads than this, and is asked more
/// rarely...
const FEW_THREADS: usize = 200;
/// ... down to once in this number of usual pauses: a change is to be seen within a second.
const LONGEST_PAUSE: usize = 3;

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("cannot connect to the system bus: {0}")]
    Bus(zbus::Error),
    #[error("the service does not run (systemctl start onbeat)")]
    NotThere,
    #[error("the service does not answer: {0}")]
    Silent(zbus::Error),
    #[error("the service is of another version of onbeat: {0}")]
    Other(serde_json::Error),
}

impl ServiceError {
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

/// Connects to the system bus, or where DBUS_SYSTEM_BUS_ADDRESS says.
pub fn connect(patience: Duration) -> Result<Connection, ServiceError> {
    let builder = connection::Builder::system().map_err(ServiceError::Bus)?;
    let connection = builder.method_timeout(patience).build();
    connection.map_err(ServiceError::Bus)
}

/// How the program of `process` goes on, or all that the user may see (0), since `since`.
pub async fn progress<D: DeserializeOwned>(
    connection: &Connection,
    process: u32,
    since: Instant,
) -> Result<Progress<D>, ServiceError> {
    let (connection, question) = (connection.inner(), (process, since.as_ns()));
    let interface = Some(INTERFACE);
    let reply = connection.call_method(Some(NAME), PATH, interface, "Progress", &question);
    let reply = reply.await.map_err(ServiceError::of)?;
    let body = reply.body();
    let text = body.deserialize().map_err(ServiceError::Silent)?;
    serde_json::from_str(text).map_err(ServiceError::Other)
}

/// The service, and since when its news are wanted.
#[derive(Debug)]
pub struct ServiceConnection {
    connection: Connection,
    since: Instant,
}

impl ServiceConnection {
    pub fn connect() -> Result<Self, ServiceError> {
        Ok(Self {
            connection: connect(PATIENCE)?,
            since: Instant::ZERO,
        })
    }

    pub fn look(&mut self) -> Result<Snapshot, ServiceError> {
        let snapshot: Snapshot = zbus::block_on(progress(&self.connection, 0, self.since))?;
        self.since = snapshot.now;
        Ok(snapshot)
    }

    /// Lets `model` hear how things stand, and again after `pause`.
    pub fn look_twice(&mut self, model: &mut Model, pause: Span) -> Result<(), ServiceError> {
        model.update(News::Snapshot(self.look()?));
        std::thread::sleep(Duration::from_nanos(pause.as_ns()));
        model.update(News::Snapshot(self.look()?));
        Ok(())
    }
}

/// Feeds snapshots of `service` until the screen is gone; reconnects if the service goes away.
pub fn follow(mut service: ServiceConnection, feeder: &Feeder) {
    loop {
        let began = Clock::now();
        let (news, pause) = match service.look() {
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
