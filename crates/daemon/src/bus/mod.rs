//! The service's end of the bus: its objects, its names, and who is there.

mod caller;
mod clients;
mod kit_name;
mod manager;
mod monitor;
mod polkit;
mod questions;
mod realtimekit;
mod socket;
mod words;

use std::sync::Arc;

use anyhow::Context;
use async_channel::Receiver;
use zbus::blocking::connection::Builder;
use zbus::blocking::{Connection, MessageIterator};
use zbus::fdo::RequestNameFlags;

use crate::keeper::Change;
use crate::request::Door;
pub(crate) use caller::Callers;
use clients::Clients;
use kit_name::KitName;
use manager::{Manager, PATH};
use monitor::Monitor;
pub use realtimekit::Limits;
use realtimekit::{InForce, RealtimeKit};

/// The name of the service.
pub const NAME: &str = "org.onbeat.Manager1";
const REALTIMEKIT: &str = "org.freedesktop.RealtimeKit1";
const REALTIMEKIT_PATH: &str = "/org/freedesktop/RealtimeKit1";

/// How the service stands on the bus.
#[derive(Debug)]
pub struct Served {
    connection: Connection,
    kit_name: KitName,
}

/// Connects to the system bus (or where DBUS_SYSTEM_BUS_ADDRESS says) and serves from then on, on
/// threads of its own.
///
/// # Errors
/// If there is no bus, or it does not let us have our name.
pub fn serve(
    door: &Door,
    changes: Receiver<Change>,
    realtimekit: Option<Limits>,
) -> anyhow::Result<Served> {
    let clients = Arc::new(Clients::default());
    let limits = InForce::default();
    limits.set(realtimekit);
    let callers = Callers::new(Arc::clone(&clients), door.clone(), limits.clone());
    let manager = Manager::new(door.clone(), callers.clone());
    let subscribers = manager.subscribers();
    let kit = RealtimeKit::new(door.clone(), callers.clone(), limits.clone());
    let no_bus = "cannot connect to the system bus: is dbus-daemon running?";
    let (socket, too_long) = socket::connect().context(no_bus)?;
    let connection = Builder::socket(socket)
        .max_queued(256)
        .serve_at(PATH, manager)
        .and_then(|builder| builder.serve_at(PATH, Monitor::new(door.clone(), callers)))
        .and_then(|builder| builder.serve_at(REALTIMEKIT_PATH, kit))
        .context("cannot serve")?
        .build()
        .context(no_bus)?;
    socket::answer(&connection, too_long)?;
    clients::watch(&connection, Arc::clone(&clients), door.clone())?;
    manager::tell(&connection, changes, subscribers)?;
    connection
        .request_name_with_flags(NAME, RequestNameFlags::DoNotQueue.into())
        .with_context(|| {
            format!("cannot have the name {NAME}: another onbeat daemon runs, or the bus's policy forbids it")
        })?;
    let kit_name = KitName::new(&connection, limits);
    kit_name.settle();
    Ok(Served {
        connection,
        kit_name,
    })
}

impl Served {
    /// Clients of RealtimeKit get this from now on; they are not served if it is none.
    pub fn serve_realtimekit(&self, limits: Option<Limits>) {
        self.kit_name.change(limits);
    }

    /// No longer serves: whoever asks from now on is told that nobody is there.
    pub fn end(self) {
        // The bus takes the names when the connection closes, too.
        let _ = self.connection.release_name(NAME);
        let _ = self.connection.release_name(REALTIMEKIT);
        let _ = self.connection.close();
    }
}

/// Every change of a name's owner.
fn name_changes(connection: &Connection) -> zbus::Result<MessageIterator> {
    let rule = zbus::MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender("org.freedesktop.DBus")?
        .interface("org.freedesktop.DBus")?
        .member("NameOwnerChanged")?
        .build();
    MessageIterator::for_match_rule(rule, connection, Some(4096))
}
