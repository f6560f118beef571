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

use super::names;
use crate::account::Account;
use crate::call_limit::CallLimit;
use crate::request::{Client, RequestSender, ServiceRequest};

/// How much of a connection's calls waits until its user is known, in bytes: the longest, or one
/// and its cancelling, say.
const MOST_WAITING: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct ClientEntry {
    pub(super) client: Arc<Client>,
    pub(super) account: Option<Arc<Account>>,
    /// Its user, for whom its calls are counted, as soon as the bus has said it.
    uid: Option<u32>,
    waiting: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Heard,
    /// Until the connection's user is known.
    Waits,
    TooMany,
}

#[derive(Debug, Default)]
pub(crate) struct Clients {
    entries: Mutex<HashMap<String, ClientEntry>>,
    /// The calls of each user, by all his connections.
    pub(super) calls: Mutex<CallLimit>,
}

impl Clients {
    pub(super) fn enter(&self, name: &str) -> ClientEntry {
        self.with(name, |entry| entry.clone())
    }

    fn with<T>(&self, name: &str, then: impl FnOnce(&mut ClientEntry) -> T) -> T {
        let mut clients = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || ClientEntry {
            client: Arc::new(Client::new(name)),
            account: None,
            uid: None,
            waiting: Vec::new(),
        };
        then(clients.entry(name.to_owned()).or_insert_with(new))
    }

    pub(super) fn know(&self, name: &str, account: &Arc<Account>) {
        let mut clients = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = clients.get_mut(name) {
            entry.account = Some(Arc::clone(account));
        }
    }

    pub(super) fn admits(&self, name: &str, call: &[u8], now: Instant) -> Admission {
        self.with(name, |entry| match entry.uid {
            Some(uid) if entry.waiting.is_empty() => {
                let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
                if calls.admits(uid, now) {
                    Admission::Heard
                } else {
                    Admission::TooMany
                }
            }
            _ if entry.waiting.len() + call.len() <= MOST_WAITING => {
                entry.waiting.extend_from_slice(call);
                Admission::Waits
            }
            _ => Admission::TooMany,
        })
    }

    pub(super) fn wait(&self, name: &str) -> bool {
        let clients = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = clients.get(name);
        entry.is_some_and(|entry| entry.uid.is_none() && !entry.waiting.is_empty())
    }

    pub(super) fn know_user(&self, name: &str, uid: u32) {
        let mut clients = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = clients.get_mut(name) {
            entry.uid = Some(uid);
        }
    }

    pub(super) fn take_waiting(&self, name: &str) -> Vec<u8> {
        let mut clients = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = clients.get_mut(name);
        entry.map_or_else(Vec::new, |entry| std::mem::take(&mut entry.waiting))
    }

    /// Forgets the connection, which is gone, if no call of it can have been carried out; whether
    /// that is so.
    pub(super) fn forget_unserved(&self, name: &str) -> bool {
        let mut clients = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = clients.get(name);
        let is_unserved = entry.is_none_or(|entry| entry.account.is_none());
        if is_unserved && let Some(entry) = clients.remove(name) {
            entry.client.leave();
        }
        is_unserved
    }

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
    let losses = names::losses(connection).context("cannot watch the bus")?;
    let watch = move || {
        for message in losses.flatten() {
            let body = message.body();
            if let Ok((BusName::Unique(name), _, _)) = body.deserialize::<(BusName, &str, &str)>()
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
