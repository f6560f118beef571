//! Asks polkit whether somebody may do something.

use std::collections::HashMap;

use zbus::Connection;
use zbus::message::{Flags, Header};
use zbus::zvariant::Value;

use super::caller::Action;

/// The action's name, as in packaging/polkit/org.onbeat.policy.
pub(super) const fn name(action: Action) -> &'static str {
    match action {
        Action::ManageOwnTasks => "org.onbeat.manage-own-tasks",
        Action::ManageOtherTasks => "org.onbeat.manage-other-tasks",
        Action::Reload => "org.onbeat.reload",
    }
}

/// Lets polkit ask the person for a password.
const ALLOW_INTERACTION: u32 = 1;

/// What the bus answers where there is no polkit.
const NOBODY: [&str; 2] = [
    "org.freedesktop.DBus.Error.ServiceUnknown",
    "org.freedesktop.DBus.Error.NameHasNoOwner",
];

/// What polkit says; none if there is no polkit to ask. One that does not answer permits nothing.
pub(super) async fn permits(
    connection: &Connection,
    header: &Header<'_>,
    action: Action,
) -> Option<bool> {
    let sender = header.sender()?;
    let details = HashMap::from([("name", Value::from(sender.as_str()))]);
    let no_details: HashMap<&str, &str> = HashMap::new();
    let interactive = header
        .primary()
        .flags()
        .contains(Flags::AllowInteractiveAuth);
    let flags = if interactive { ALLOW_INTERACTION } else { 0 };
    let answer = connection
        .call_method(
            Some("org.freedesktop.PolicyKit1"),
            "/org/freedesktop/PolicyKit1/Authority",
            Some("org.freedesktop.PolicyKit1.Authority"),
            "CheckAuthorization",
            &(
                ("system-bus-name", details),
                name(action),
                no_details,
                flags,
                "",
            ),
        )
        .await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(zbus::Error::MethodError(name, ..)) if NOBODY.contains(&name.as_str()) => return None,
        Err(_) => return Some(false),
    };
    let authorised = answer
        .body()
        .deserialize::<(bool, bool, HashMap<String, String>)>();
    Some(authorised.is_ok_and(|(authorised, _, _)| authorised))
}
