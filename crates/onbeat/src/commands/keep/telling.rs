//! The news while the loop turns: to the log, to the user, and to the collector of metrics.

use std::cell::RefCell;
use std::io::{self, Write};

use onbeat_control::{BoostWhat, Controller, SpeedWhat, What};
use onbeat_metrics::Metrics;
use onbeat_model::{Actuator, Instant};
use serde::Serialize;

use crate::history::History;

/// Writes the journal to the log, and what a person should know at once to standard error.
pub(in crate::commands) fn tell<A: Actuator>(
    controller: &mut Controller<A>,
    log: &mut Option<impl Write>,
    history: Option<&RefCell<History>>,
    metrics: &mut Option<Metrics>,
    quiet: bool,
) -> io::Result<()> {
    let mut history = history.map(RefCell::borrow_mut);
    let mut any = false;
    for entry in controller.journal() {
        any = true;
        if let Some(history) = &mut history {
            history.decided(&entry);
        }
        if let Some(metrics) = metrics {
            metrics.decided(&entry);
        }
        write_line(log, &entry)?;
        if !quiet && matches!(entry.what, What::Refused | What::TakenOver) {
            eprintln!(
                "onbeat: {} ({}): {}",
                entry.task.comm, entry.task.id, entry.why
            );
        }
    }
    for entry in controller.boost_journal() {
        any = true;
        write_line(log, &entry)?;
        if !quiet && entry.what == BoostWhat::BoostRefused {
            eprintln!(
                "onbeat: {} ({}): {}",
                entry.task.comm, entry.task.id, entry.why
            );
        }
    }
    for entry in controller.speed_journal() {
        any = true;
        if let Some(history) = &mut history {
            history.speed_decided(&entry);
        }
        write_line(log, &entry)?;
        if !quiet && entry.what == SpeedWhat::Refused {
            let speed = entry.new.map_or("as before".to_owned(), |s| s.to_string());
            eprintln!("onbeat: CPU speed {speed}: {}", entry.why);
        }
    }
    match log {
        Some(log) if any => log.flush(),
        _ => Ok(()),
    }
}

/// Tells the collector of metrics the present figures.
pub(super) fn attend<A: Actuator>(
    metrics: &mut Option<Metrics>,
    controller: &mut Controller<A>,
    now: Instant,
) {
    let outcome = metrics.as_mut().map(|m| m.attend(controller, now));
    if let Some(Err(error)) = outcome {
        eprintln!("onbeat: {error}");
    }
}

fn write_line(log: &mut Option<impl Write>, entry: &impl Serialize) -> io::Result<()> {
    let Some(log) = log else {
        return Ok(());
    };
    serde_json::to_writer(&mut *log, entry)?;
    log.write_all(b"\n")
}
