//! The service's end of the bus: its objects, its names, and its clients.

mod caller;
mod clients;
mod limits;
mod manager;
mod monitor;
mod name_owner;
mod names;
mod polkit;
mod question_limit;
mod realtimekit;
mod socket;
mod wire;

use std::sync::Arc;

use anyhow::Context;
use async_channel::Receiver;
use zbus::blocking::Connection;
use zbus::blocking::connection::Builder;
use zbus::fdo::RequestNameFlags;

use crate::publisher::Change;
use crate::request::RequestSender;
use caller::Callers;
use clients::Clients;
use limits::LimitsInForce;
pub use limits::PriorityLimits;
use manager::{ManagerObject, PATH};
use monitor::Monitor;
use name_owner::NameOwner;
pub use names::NAME;
use names::REALTIMEKIT;
use realtimekit::{PATH as REALTIMEKIT_PATH, RealtimeKit};
#[cfg(any(test, fuzzing))]
pub use socket::prepared::{Endian, Heard, heard_in, track_in_body};

#[derive(Debug)]
pub struct Served {
    connection: Connection,
    name_owner: NameOwner,
}

/// Connects to the system bus (or where DBUS_SYSTEM_BUS_ADDRESS says) and serves from then on, on
/// threads of its own.
/// Fails if there is no bus, or it does not let us have our name.
pub fn serve(
    requests: &RequestSender,
    changes: Receiver<Change>,
    realtimekit: Option<PriorityLimits>,
) -> anyhow::Result<Served> {
    let clients = Arc::new(Clients::default());
    let limits = LimitsInForce::default();
    limits.set(realtimekit);
    let no_bus = "cannot connect to the system bus: is dbus-daemon running?";
    let (socket, skipped, strangers) = socket::connect(&clients).context(no_bus)?;
    let connection = Builder::socket(socket).max_queued(256).build();
    let connection = connection.context(no_bus)?;
    let (inner, known) = (connection.inner().clone(), Arc::clone(&clients));
    let callers = Callers::new(inner, known, requests.clone(), limits.clone());
    let manager = ManagerObject::new(requests.clone(), callers.clone());
    let subscribers = manager.subscribers();
    let monitor = Monitor::new(requests.clone(), callers.clone());
    let kit = RealtimeKit::new(requests.clone(), callers, limits.clone());
    let objects = connection.object_server();
    (objects.at(PATH, manager))
        .and_then(|_| objects.at(PATH, monitor))
        .and_then(|_| objects.at(REALTIMEKIT_PATH, kit))
        .context("cannot serve")?;
    drop(objects);
    socket::answer(&connection, skipped)?;
    socket::ask(&connection, strangers)?;
    clients::watch(&connection, Arc::clone(&clients), requests.clone())?;
    manager::tell(&connection, changes, subscribers)?;
    connection
        .request_name_with_flags(NAME, RequestNameFlags::DoNotQueue.into())
        .with_context(|| {
            format!("cannot have the name {NAME}: another onbeat daemon runs, or the bus's policy forbids it")
        })?;
    let name_owner = NameOwner::new(&connection, limits);
    name_owner.settle();
    Ok(Served {
        connection,
        name_owner,
    })
}

impl Served {
    /// Clients of RealtimeKit get this from now on; they are not served if it is none.
    pub fn serve_realtimekit(&self, limits: Option<PriorityLimits>) {
        self.name_owner.change(limits);
    }

    /// No longer serves: clients that ask from now on are told that the name has no owner.
    pub fn end(self) {
        // The bus takes the names when the connection closes, too.
        let _ = self.connection.release_name(NAME);
        let _ = self.connection.release_name(REALTIMEKIT);
        let _ = self.connection.close();
    }
}
