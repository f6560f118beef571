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
        Action::PrioritiseOwnTasks => "org.onbeat.prioritise-own-tasks",
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

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = include_str!("../../../../packaging/polkit/org.onbeat.policy");

    /// What the policy says about the action.
    fn described(action: Action) -> &'static str {
        let head = format!("<action id=\"{}\">", name(action));
        let (_, rest) = POLICY.split_once(&head).unwrap();
        rest.split_once("</action>").unwrap().0
    }

    #[test]
    fn only_who_sits_at_the_machine_gets_priorities_and_only_administrators_others_tasks() {
        assert!(described(Action::ManageOwnTasks).contains("<allow_any>yes<"));
        let priorities = described(Action::PrioritiseOwnTasks);
        assert!(priorities.contains("<allow_active>yes<"));
        assert_eq!(priorities.matches(">yes<").count(), 1);
        for action in [Action::ManageOtherTasks, Action::Reload] {
            assert_eq!(described(action).matches(">auth_admin").count(), 3);
        }
    }
}
