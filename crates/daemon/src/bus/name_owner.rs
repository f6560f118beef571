//! RealtimeKit's name on the bus: onbeat has it as long as its clients are to be served and no
//! other service has it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use zbus::blocking::Connection;
use zbus::fdo::{RequestNameFlags, RequestNameReply};

use super::limits::{LimitsInForce, PriorityLimits};
use super::names::REALTIMEKIT;

/// Where an administrator's link stands for RealtimeKit's unit: `systemctl mask` makes one.
const ITS_UNIT: &str = "/etc/systemd/system/rtkit-daemon.service";

#[derive(Clone, Debug)]
pub(super) struct NameOwner {
    connection: Connection,
    limits: LimitsInForce,
    is_asked_for: Arc<Mutex<bool>>,
}

impl NameOwner {
    /// Not asked for yet.
    pub(super) fn new(connection: &Connection, limits: LimitsInForce) -> Self {
        Self {
            connection: connection.clone(),
            limits,
            is_asked_for: Arc::default(),
        }
    }

    /// Clients get this from now on, if anything. The bus is told on a thread of its own: the
    /// caller does not wait for it.
    pub(super) fn change(&self, limits: Option<PriorityLimits>) {
        self.limits.set(limits);
        let name = self.clone();
        let settle = move || name.settle();
        let started = std::thread::Builder::new().name("bus-kit-name".to_owned());
        if let Err(error) = started.spawn(settle) {
            tracing::error!("cannot start a thread ({error}): RealtimeKit's name stays as it is");
        }
    }

    /// Asks for the name or gives it up, as the limits say by now, and tells if it is not ours.
    pub(super) fn settle(&self) {
        let asked = self.is_asked_for.lock();
        let mut asked = asked.unwrap_or_else(PoisonError::into_inner);
        let wanted = self.limits.get().is_some();
        if wanted && !*asked {
            match self.ask() {
                Ok(None) => {}
                Ok(Some(why)) => tracing::warn!("clients of RealtimeKit are not served: {why}"),
                Err(error) => {
                    tracing::warn!("clients of RealtimeKit are not served: {error}");
                    return;
                }
            }
        } else if !wanted {
            if *asked && let Err(error) = self.connection.release_name(REALTIMEKIT) {
                tracing::warn!("cannot give up the name {REALTIMEKIT}: {error}");
            }
            tracing::warn!("clients of RealtimeKit are not served: the configuration says not to");
        }
        *asked = wanted;
    }

    /// Without any flag: the present owner is not replaced, and once it is gone the name is ours.
    /// Until then, why it is not.
    fn ask(&self) -> zbus::Result<Option<&'static str>> {
        let bus = zbus::blocking::fdo::DBusProxy::new(&self.connection)?;
        let names = bus.list_activatable_names()?;
        if is_realtimekits(names.iter().map(|name| name.as_str()), Path::new(ITS_UNIT)) {
            return Ok(Some(
                "RealtimeKit is installed and serves them; to have onbeat do it: systemctl mask --now rtkit-daemon, then \
                 systemctl restart onbeat",
            ));
        }
        let flags = std::iter::empty::<RequestNameFlags>().collect();
        let reply = self.connection.request_name_with_flags(REALTIMEKIT, flags);
        Ok(match reply? {
            RequestNameReply::InQueue => {
                Some("RealtimeKit itself serves them; once it is gone, onbeat does")
            }
            _ => None,
        })
    }
}

/// RealtimeKit is installed, and no administrator has taken its place away: who asked for it keeps
/// it.
fn is_realtimekits<'a>(mut activatable: impl Iterator<Item = &'a str>, unit: &Path) -> bool {
    activatable.any(|name| name == REALTIMEKIT) && !unit.is_symlink()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn realtimekit_keeps_its_clients_unless_an_administrator_masks_it() {
        let folder = tempfile::tempdir().unwrap();
        let unit = folder.path().join("rtkit-daemon.service");
        let installed = ["org.freedesktop.systemd1", REALTIMEKIT];
        assert!(is_realtimekits(installed.into_iter(), &unit));
        assert!(!is_realtimekits(
            ["org.freedesktop.systemd1"].into_iter(),
            &unit
        ));
        std::os::unix::fs::symlink("/dev/null", &unit).unwrap();
        assert!(!is_realtimekits(installed.into_iter(), &unit));
    }
}
