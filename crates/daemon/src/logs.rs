//! The log: to the journal with fields of its own where that listens, else to standard error.

use std::sync::OnceLock;

use onbeat_control::{Entry, What};
use onbeat_model::Reservation;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Begins to log. Other crates' messages about their own work are left out.
pub fn begin() {
    static BEGUN: OnceLock<()> = OnceLock::new();
    BEGUN.get_or_init(|| {
        let ours = Targets::new().with_target("onbeat_daemon", LevelFilter::INFO);
        let registry = tracing_subscriber::registry().with(ours);
        // systemd says in JOURNAL_STREAM that standard error leads to the journal.
        let journal =
            std::env::var_os("JOURNAL_STREAM").and_then(|_| tracing_journald::layer().ok());
        // It can only fail if there is a subscriber already, which then logs.
        let _ = match journal {
            Some(journal) => registry
                .with(journal.with_syslog_identifier("onbeat".to_owned()))
                .try_init(),
            None => registry
                .with(
                    tracing_subscriber::fmt::layer()
                        .with_writer(std::io::stderr)
                        .with_target(false)
                        .without_time(),
                )
                .try_init(),
        };
    });
}

/// A thread's change, its reason, and the reservations before and after.
pub(crate) fn entry(entry: &Entry) {
    let (task, what) = (entry.task, entry.what.name());
    let (old, new) = (in_words(entry.old), in_words(entry.new));
    match entry.what {
        What::Refused | What::TakenOver | What::Doubted => tracing::warn!(
            tid = task.id.tid, pid = task.pid, comm = %task.comm, what, why = %entry.why, old, new,
            "{} ({}): {what}: {}", task.comm, task.id.tid, entry.why
        ),
        _ => tracing::info!(
            tid = task.id.tid, pid = task.pid, comm = %task.comm, what, why = %entry.why, old, new,
            "{} ({}): {what} {new}: {}", task.comm, task.id.tid, entry.why
        ),
    }
}

fn in_words(reservation: Option<Reservation>) -> String {
    reservation.map_or_else(|| "nothing".to_owned(), |r| r.to_string())
}
