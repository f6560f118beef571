//! The service's end of the bus: its objects, its names, and who is there.

mod caller;
mod clients;
mod manager;
mod monitor;
mod polkit;
mod questions;
mod realtimekit;
mod words;

use std::sync::Arc;

use anyhow::Context;
use async_channel::Receiver;
use zbus::blocking::connection::Builder;
use zbus::blocking::{Connection, MessageIterator};
use zbus::fdo::{RequestNameFlags, RequestNameReply};

use crate::keeper::Change;
use crate::request::Door;
pub(crate) use caller::Callers;
use clients::Clients;
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
    /// Why RealtimeKit's name is not ours, if it is not.
    pub realtimekit: Result<(), String>,
}

/// Connects to the system bus (or where DBUS_SYSTEM_BUS_ADDRESS says) and serves from then on, on threads of
/// its own.
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
    let callers = Callers::new(Arc::clone(&clients), limits.clone());
    let manager = Manager::new(door.clone(), callers.clone());
    let subscribers = manager.subscribers();
    let kit = RealtimeKit::new(door.clone(), callers.clone(), limits);
    let connection = Builder::system()?
        .max_queued(256)
        .serve_at(PATH, manager)
        .and_then(|builder| builder.serve_at(PATH, Monitor::new(door.clone(), callers)))
        .and_then(|builder| builder.serve_at(REALTIMEKIT_PATH, kit))
        .context("cannot serve")?
        .build()
        .context("cannot connect to the system bus: is dbus-daemon running?")?;
    clients::watch(&connection, Arc::clone(&clients), door.clone())?;
    manager::tell(&connection, changes, subscribers)?;
    connection
        .request_name_with_flags(NAME, RequestNameFlags::DoNotQueue.into())
        .with_context(|| {
            format!("cannot have the name {NAME}: another onbeat daemon runs, or the bus's policy forbids it")
        })?;
    let realtimekit = match realtimekit {
        None => Err("the configuration says not to serve it".to_owned()),
        // Without any flag: whoever has it is not replaced, and once he is gone it is ours.
        Some(_) => connection
            .request_name_with_flags(
                REALTIMEKIT,
                std::iter::empty::<RequestNameFlags>().collect(),
            )
            .map_err(|error| error.to_string())
            .and_then(|reply| match reply {
                RequestNameReply::InQueue => {
                    Err("RealtimeKit itself serves them; once it is gone, onbeat does".to_owned())
                }
                _ => Ok(()),
            }),
    };
    Ok(Served {
        connection,
        realtimekit,
    })
}

impl Served {
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
