//! The service's names on the bus, and the owner of each.

use zbus::blocking::{Connection, MessageIterator};

pub const NAME: &str = "org.onbeat.Manager1";
pub(super) const REALTIMEKIT: &str = "org.freedesktop.RealtimeKit1";

/// Every name that has no owner any more.
pub(super) fn losses(connection: &Connection) -> zbus::Result<MessageIterator> {
    let rule = zbus::MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender("org.freedesktop.DBus")?
        .interface("org.freedesktop.DBus")?
        .member("NameOwnerChanged")?
        .arg(2, "")?
        .build();
    MessageIterator::for_match_rule(rule, connection, Some(4096))
}
