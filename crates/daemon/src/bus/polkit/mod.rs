//! Asks polkit whether a user may do something.
//!
//! A question may stay open for long: polkit lets an agent of the caller's ask for a password, and
//! the agent is the caller's program. So few are open at a time ([`QuestionLimit`]), and each is
//! given up after a while: polkit is told so, as the bus counts a question until it is answered.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_io::Timer;
use futures_lite::future;
use zbus::message::{Flags, Header};
use zbus::zvariant::Value;
use zbus::{Connection, Message};

use super::question_limit::QuestionLimit;
use crate::fault::Fault;

/// The action's name, as in packaging/polkit/org.onbeat.policy.
pub(super) const fn name(action: Action) -> &'static str {
    match action {
        Action::ManageOwnTasks => "org.onbeat.manage-own-tasks",
        Action::MakeRealTime | Action::MakeHighPriority => "org.onbeat.prioritise-own-tasks",
        Action::ManageOtherTasks => "org.onbeat.manage-other-tasks",
        Action::Reload => "org.onbeat.reload",
    }
}

/// RealtimeKit's name of the same action: administrators' rules may be about that. polkit knows it
/// where RealtimeKit is installed.
const fn name_of_realtimekit(action: Action) -> Option<&'static str> {
    match action {
        Action::MakeRealTime => Some("org.freedesktop.RealtimeKit1.acquire-real-time"),
        Action::MakeHighPriority => Some("org.freedesktop.RealtimeKit1.acquire-high-priority"),
        Action::ManageOwnTasks | Action::ManageOtherTasks | Action::Reload => None,
    }
}

const SERVICE: &str = "org.freedesktop.PolicyKit1";
const PATH: &str = "/org/freedesktop/PolicyKit1/Authority";
const INTERFACE: &str = "org.freedesktop.PolicyKit1.Authority";

/// Lets polkit ask the user for a password.
const ALLOW_INTERACTION: u32 = 1;

const NOBODY: [&str; 2] = [
    "org.freedesktop.DBus.Error.ServiceUnknown",
    "org.freedesktop.DBus.Error.NameHasNoOwner",
];
/// The bus's errors where there is one that cannot be asked now.
const NOT_NOW: [&str; 3] = [
    "org.freedesktop.DBus.Error.LimitsExceeded",
    "org.freedesktop.DBus.Error.NoReply",
    "org.freedesktop.DBus.Error.TimedOut",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// To have one's own tasks tracked and reserved for, within quotas.
    ManageOwnTasks,
    /// To have one's own tasks given a real-time priority, which no quota bounds but their number.
    MakeRealTime,
    /// The same of a nice level.
    MakeHighPriority,
    /// The same of other users' tasks.
    ManageOtherTasks,
    /// To have the configuration read anew.
    Reload,
}

#[derive(Clone, Copy, Debug)]
struct AnswerPatience {
    quick: Duration,
    with_password: Duration,
}

#[derive(Debug)]
pub(super) struct Polkit {
    quick: QuestionLimit,
    with_password: QuestionLimit,
    patience: AnswerPatience,
    asked: AtomicU64,
}

impl Default for Polkit {
    /// Together fewer than a connection may have open.
    fn default() -> Self {
        Self {
            quick: QuestionLimit::new(8, 64),
            with_password: QuestionLimit::new(2, 32),
            patience: AnswerPatience {
                quick: Duration::from_secs(25),
                with_password: Duration::from_secs(120),
            },
            asked: AtomicU64::new(0),
        }
    }
}

impl Polkit {
    /// Asks polkit about the user `uid`, who calls; none if there is no polkit to ask. One that
    /// answers with something else than yes permits nothing. An action that RealtimeKit has a name
    /// for is asked by that, if polkit knows it.
    /// Fails if it cannot be asked now, or does not answer.
    pub(super) async fn permits(
        &self,
        connection: &Connection,
        header: &Header<'_>,
        uid: u32,
        action: Action,
    ) -> Result<Option<Verdict>, Fault> {
        for name in [name_of_realtimekit(action), Some(name(action))] {
            let Some(name) = name else { continue };
            match self.answer(connection, header, uid, name).await? {
                Some(PolkitAnswer {
                    is_unknown: true, ..
                }) => {}
                answer => {
                    return Ok(answer.map(|answer| Verdict {
                        permitted: answer.authorised,
                        name,
                    }));
                }
            }
        }
        Ok(Some(Verdict {
            permitted: false,
            name: name(action),
        }))
    }

    async fn answer(
        &self,
        connection: &Connection,
        header: &Header<'_>,
        uid: u32,
        action: &'static str,
    ) -> Result<Option<PolkitAnswer>, Fault> {
        let wants_interaction = header
            .primary()
            .flags()
            .contains(Flags::AllowInteractiveAuth);
        if wants_interaction && let Some(_open) = self.with_password.try_open(uid) {
            let patience = self.patience.with_password;
            let answer = self.ask(connection, header, action, ALLOW_INTERACTION, patience);
            return answer.await;
        }
        let patience = self.patience.quick;
        let Some(_open) = within(patience, self.quick.open(uid)).await else {
            return Err(later("too many questions to polkit are open"));
        };
        let answer = self.ask(connection, header, action, 0, patience).await?;
        match answer {
            Some(answer) if wants_interaction && !answer.authorised && answer.takes_password => {
                Err(later(
                    "it takes a password, and too many are being asked for",
                ))
            }
            answer => Ok(answer),
        }
    }

    async fn ask(
        &self,
        connection: &Connection,
        header: &Header<'_>,
        action: &'static str,
        flags: u32,
        patience: Duration,
    ) -> Result<Option<PolkitAnswer>, Fault> {
        let sender = header.sender().map(ToString::to_string).unwrap_or_default();
        let subject = HashMap::from([("name", Value::from(sender))]);
        let no_details: HashMap<&str, &str> = HashMap::new();
        // By which the question can be taken back.
        let number = self.asked.fetch_add(1, Ordering::Relaxed).to_string();
        let question = (
            ("system-bus-name", subject),
            action,
            no_details,
            flags,
            &*number,
        );
        let asked = connection.call_method(
            Some(SERVICE),
            PATH,
            Some(INTERFACE),
            "CheckAuthorization",
            &question,
        );
        match within(patience, asked).await {
            Some(Ok(answer)) => Ok(Some(PolkitAnswer::read(&answer))),
            Some(Err(zbus::Error::MethodError(name, ..))) if NOBODY.contains(&name.as_str()) => {
                Ok(None)
            }
            Some(Err(zbus::Error::MethodError(name, ..))) if NOT_NOW.contains(&name.as_str()) => {
                Err(later("polkit cannot be asked now"))
            }
            Some(Err(zbus::Error::MethodError(_, Some(text), _))) => Ok(Some(PolkitAnswer {
                // It has no error of its own for that.
                is_unknown: text.contains("is not registered"),
                ..PolkitAnswer::default()
            })),
            Some(Err(_)) => Ok(Some(PolkitAnswer::default())),
            None => {
                take_back(connection, &number).await;
                Err(later("polkit did not answer in time"))
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct PolkitAnswer {
    authorised: bool,
    /// It might be with a password, and none was asked for.
    takes_password: bool,
    is_unknown: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) permitted: bool,
    pub(super) name: &'static str,
}

impl PolkitAnswer {
    fn read(message: &Message) -> Self {
        let body = message.body();
        let told = body.deserialize::<(bool, bool, HashMap<String, String>)>();
        told.map_or_else(
            |_| Self::default(),
            |(authorised, takes_password, _)| Self {
                authorised,
                takes_password,
                is_unknown: false,
            },
        )
    }
}

/// Tells polkit that the answer is not needed any more, and does not wait until that is heard.
async fn take_back(connection: &Connection, number: &str) {
    let message = Message::method_call(PATH, "CancelCheckAuthorization")
        .and_then(|message| message.destination(SERVICE))
        .and_then(|message| message.interface(INTERFACE))
        .and_then(|message| message.with_flags(Flags::NoReplyExpected))
        .and_then(|message| message.build(&number));
    if let Ok(message) = message {
        // A connection that is broken has no question open, either.
        let _ = connection.send(&message).await;
    }
}

/// The result of `answer`, if it comes in time.
async fn within<T>(patience: Duration, answer: impl Future<Output = T>) -> Option<T> {
    let answered = async { Some(answer.await) };
    let over = async {
        Timer::after(patience).await;
        None
    };
    future::or(answered, over).await
}

fn later(why: &str) -> Fault {
    Fault::Failed(format!("{why}: ask again later"))
}

#[cfg(test)]
mod tests;
