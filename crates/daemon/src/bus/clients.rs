//! The connections on the bus: a connection that is gone holds nothing any more.
//!
//! A connection is entered before the bus is asked whose it is. So either the bus says that it is
//! gone, or its leaving is told after it was entered, and marks the entry; and each part that
//! grants something looks at the mark.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use onbeat_model::Instant;
use zbus::blocking::Connection;
use zbus::names::BusName;
use zbus::zvariant::Optional;

use super::names;
use crate::account::Account;
use crate::call_limit::CallLimit;
use crate::request::{Client, RequestSender, ServiceRequest};

/// The most calls that a connection may send before its user is known: one and its cancelling, say.
const FIRST_CALLS: u32 = 8;

/// A connection, and its account as soon as that is known.
#[derive(Clone, Debug)]
pub(super) struct ClientEntry {
    pub(super) client: Arc<Client>,
    pub(super) account: Option<Arc<Account>>,
    /// Its calls before that.
    first_calls: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Clients {
    entries: Mutex<HashMap<String, ClientEntry>>,
    /// The calls of each user, by all his connections.
    pub(super) calls: Mutex<CallLimit>,
}

impl Clients {
    /// The connection of this name; entered if it is new.
    pub(super) fn enter(&self, name: &str) -> ClientEntry {
        self.with(name, |entry| entry.clone())
    }

    fn with<T>(&self, name: &str, then: impl FnOnce(&mut ClientEntry) -> T) -> T {
        let mut clients = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || ClientEntry {
            client: Arc::new(Client::new(name)),
            account: None,
            first_calls: 0,
        };
        then(clients.entry(name.to_owned()).or_insert_with(new))
    }

    /// The client is this account's.
    pub(super) fn know(&self, name: &str, account: &Arc<Account>) {
        let mut clients = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = clients.get_mut(name) {
            entry.account = Some(Arc::clone(account));
        }
    }

    /// Whether one more call of the connection is heard at `now`: as its user may call, or one of
    /// its first before that user is known.
    pub(super) fn admits(&self, name: &str, now: Instant) -> bool {
        self.with(name, |entry| {
            let Some(account) = &entry.account else {
                entry.first_calls = entry.first_calls.saturating_add(1);
                return entry.first_calls <= FIRST_CALLS;
            };
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.admits(account.uid, now)
        })
    }

    /// It is gone; the entry, if there was one.
    pub(super) fn leave(&self, name: &str) -> Option<Arc<Client>> {
        let mut clients = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = clients.remove(name)?;
        entry.client.leave();
        Some(entry.client)
    }
}

/// Watches connections leave the bus, from now on, on a thread of its own; and tells when the bus
/// itself is gone.
pub(super) fn watch(
    connection: &Connection,
    clients: Arc<Clients>,
    requests: RequestSender,
) -> anyhow::Result<()> {
    let changes = names::changes(connection).context("cannot watch the bus")?;
    let watch = move || {
        for message in changes.flatten() {
            let body = message.body();
            type NameOwnerChange<'a> = (BusName<'a>, Optional<&'a str>, Optional<&'a str>);
            let Ok((BusName::Unique(name), _, new)) = body.deserialize::<NameOwnerChange<'_>>()
            else {
                continue;
            };
            if new.is_none()
                && let Some(client) = clients.leave(name.as_str())
            {
                zbus::block_on(requests.tell(ServiceRequest::Left(Arc::clone(&client.name))));
            }
        }
        // The messages end with our own connection.
        zbus::block_on(requests.tell(ServiceRequest::BusGone));
    };
    std::thread::Builder::new()
        .name("bus-clients".to_owned())
        .spawn(watch)
        .context("cannot start a thread")?;
    Ok(())
}
