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

/// What polkit says; none if there is no polkit to ask, or it does not know the action.
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
        .await
        .ok()?;
    let (authorised, _, _): (bool, bool, HashMap<String, String>) =
        answer.body().deserialize().ok()?;
    Some(authorised)
}
