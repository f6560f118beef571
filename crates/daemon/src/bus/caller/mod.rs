//! The caller, and whether it may call: by what the bus says of his connection, never by what he
//! says himself.

use std::sync::{Arc, PoisonError};

use onbeat_kernel::proc;
use zbus::Connection;
use zbus::fdo::ConnectionCredentials;
use zbus::message::Header;

use super::clients::Clients;
use super::limits::LimitsInForce;
use super::polkit::{self, Action, Polkit};
use crate::account::Account;
use crate::call_limit::cost_of_tracking;
use crate::directory;
use crate::fault::Fault;
use crate::request::{Caller, RequestSender, ServiceRequest};
use crate::target::Target;

#[derive(Clone, Debug)]
pub(crate) struct Callers {
    pub(super) connection: Connection,
    clients: Arc<Clients>,
    requests: RequestSender,
    polkit: Arc<Polkit>,
    realtimekit: LimitsInForce,
}

impl Callers {
    pub(super) fn new(
        connection: Connection,
        clients: Arc<Clients>,
        requests: RequestSender,
        realtimekit: LimitsInForce,
    ) -> Self {
        Self {
            connection,
            clients,
            requests,
            polkit: Arc::default(),
            realtimekit,
        }
    }

    /// The sender of the message, if it is to be answered at all.
    pub(super) async fn of(&self, header: &Header<'_>) -> Result<Caller, Fault> {
        let sender = header
            .sender()
            .ok_or_else(|| Fault::NotPermitted("a call without a sender".to_owned()))?;
        let entry = self.clients.enter(sender.as_str());
        let account = match entry.account {
            Some(account) => account,
            None => {
                let account = match ask(&self.connection, sender.as_str()).await {
                    Ok(account) => Arc::new(account),
                    Err(unknown) => {
                        if unknown.is_gone {
                            self.gone(sender.as_str()).await;
                        }
                        return Err(unknown.fault);
                    }
                };
                self.clients.know(sender.as_str(), &account);
                account
            }
        };
        Ok(Caller {
            client: entry.client,
            account,
            serial: header.primary().serial_num().get(),
        })
    }

    /// The caller has a task tracked: the tracer goes through all tasks of the machine for it.
    pub(super) fn charge_tracking(&self, caller: &Caller) {
        let calls = &self.clients.calls;
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.charge(caller.account.uid, cost_of_tracking(proc::tasks()));
    }

    /// The bus does not know the connection any more, and may have said that it is gone before it
    /// was entered. Another call of it may have been carried out meanwhile.
    async fn gone(&self, name: &str) {
        if let Some(client) = self.clients.leave(name) {
            let left = ServiceRequest::Left(Arc::clone(&client.name));
            self.requests.tell(left).await;
        }
    }

    /// The thread `tid`, of `process` if that is told, if the caller may have something done to it.
    /// For one of its own, polkit is asked about the action `own`.
    pub(super) async fn target(
        &self,
        caller: &Caller,
        (tid, process): (u32, Option<u32>),
        own: Action,
        header: &Header<'_>,
    ) -> Result<Target, Fault> {
        let target = Target::find(tid, process)?;
        let (id, uid) = (target.task.id, target.uid);
        // polkit may ask a user for a password: nothing is held open for that long.
        drop(target);
        let action = if uid == caller.account.uid {
            own
        } else {
            Action::ManageOtherTasks
        };
        self.permit(caller, action, header)
            .await
            .map_err(|fault| match fault {
                Fault::NotPermitted(_) if action == Action::ManageOtherTasks => {
                    Fault::NotPermitted(format!(
                        "task {tid} belongs to user {uid}: only that user, or an administrator, may do that"
                    ))
                }
                other => other,
            })?;
        let target = Target::find(tid, process)?;
        if (target.task.id, target.uid) == (id, uid) {
            Ok(target)
        } else {
            Err(Fault::NoSuchTask(format!(
                "task {tid} is another task's number by now"
            )))
        }
    }

    /// Whether the caller may do that: root may, and otherwise polkit decides. Where there is no
    /// polkit, he may do what he likes with his own tasks, within his quotas; a priority, which
    /// they do not bound, he gets if the configuration says so.
    pub(super) async fn permit(
        &self,
        caller: &Caller,
        action: Action,
        header: &Header<'_>,
    ) -> Result<(), Fault> {
        if caller.account.is_root() {
            return Ok(());
        }
        let uid = caller.account.uid;
        let asked = (self.polkit).permits(&self.connection, header, uid, action);
        let answer = asked.await?;
        let permitted = match (answer, action) {
            (Some(verdict), _) => verdict.permitted,
            (None, Action::ManageOwnTasks) => true,
            (None, Action::MakeRealTime | Action::MakeHighPriority) => {
                let limits = self.realtimekit.get();
                limits.is_some_and(|limits| limits.without_polkit)
            }
            (None, Action::ManageOtherTasks | Action::Reload) => false,
        };
        if permitted {
            return Ok(());
        }
        let name = answer.map_or(polkit::name(action), |verdict| verdict.name);
        Err(Fault::NotPermitted(match (answer, action) {
            (None, Action::MakeRealTime | Action::MakeHighPriority) => format!(
                "that needs the permission {name} of polkit, which is not here: install it, or write without-polkit = \
                 true under [realtimekit] in onbeat.toml"
            ),
            _ => format!(
                "that needs the permission {name} of polkit: {}",
                match action {
                    Action::ManageOwnTasks | Action::MakeRealTime | Action::MakeHighPriority =>
                        "who sits at the machine has it, and an administrator gives it to others by a rule of polkit",
                    Action::ManageOtherTasks | Action::Reload => "administrators have it",
                }
            ),
        }))
    }
}

struct Unknown {
    fault: Fault,
    is_gone: bool,
}

impl Unknown {
    fn because(why: &str) -> Self {
        Self {
            fault: Fault::NotPermitted(format!("the bus does not say who calls{why}")),
            is_gone: false,
        }
    }
}

impl From<zbus::Error> for Unknown {
    fn from(error: zbus::Error) -> Self {
        let is_gone = matches!(&error, zbus::Error::MethodError(name, ..) if *name == GONE);
        Self {
            is_gone,
            ..Self::because(&format!(": {error}"))
        }
    }
}

const GONE: &str = "org.freedesktop.DBus.Error.NameHasNoOwner";

async fn ask(connection: &Connection, name: &str) -> Result<Account, Unknown> {
    let answer = connection
        .call_method(
            Some("org.freedesktop.DBus"),
            "/org/freedesktop/DBus",
            Some("org.freedesktop.DBus"),
            "GetConnectionCredentials",
            &name,
        )
        .await
        .and_then(|reply| reply.body().deserialize::<ConnectionCredentials>());
    let credentials = answer?;
    let uid = credentials
        .unix_user_id()
        .ok_or_else(|| Unknown::because(""))?;
    let known = directory::find(uid).await.ok_or_else(|| Unknown {
        fault: Fault::Failed("the database of users does not answer: ask again later".to_owned()),
        is_gone: false,
    })?;
    if !known.is_known() {
        return Err(Unknown {
            fault: Fault::NotPermitted(format!(
                "user {uid} has no account on this machine: ask as one that has"
            )),
            is_gone: false,
        });
    }
    let mut account = Account::clone(&known);
    // Those that the process has beside the database's.
    account
        .groups
        .extend(credentials.unix_group_ids().into_iter().flatten());
    Ok(account)
}

#[cfg(test)]
mod tests;
