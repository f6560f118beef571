//! The news while the loop turns: to the log, to the user, and to the collector of metrics.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::{self, Write};

use onbeat_control::{Controller, Decision, SpeedWhat, What};
use onbeat_metrics::Metrics;
use onbeat_model::{Actuator, Instant, Task};
use serde::Serialize;

use crate::history::RunHistory;

/// Writes the journal to the log, and what a person should know at once to standard error.
pub(in crate::commands) fn tell<A: Actuator>(
    controller: &mut Controller<A>,
    log: &mut Option<impl Write>,
    history: Option<&RefCell<RunHistory>>,
    metrics: &mut Option<Metrics>,
    quiet: bool,
) -> io::Result<()> {
    let mut history = history.map(RefCell::borrow_mut);
    if let Some(history) = &mut history {
        history.take_jobs();
    }
    let mut any = false;
    for decision in controller.journal() {
        any = true;
        if let Some(history) = &mut history {
            history.decided(&decision);
        }
        write_line(log, &decision)?;
        let news = match &decision {
            Decision::Reservation(entry) => {
                if let Some(metrics) = metrics {
                    metrics.decided(entry);
                }
                matches!(entry.what, What::Refused | What::TakenOver)
                    .then(|| about(&entry.task, &entry.why))
            }
            Decision::Boost(_) => None,
            Decision::Speed(entry) => (entry.what == SpeedWhat::Refused).then(|| {
                let speed = entry.new.map_or("as before".to_owned(), |s| s.to_string());
                format!("CPU speed {speed}: {}", entry.why)
            }),
        };
        if let Some(news) = news.filter(|_| !quiet) {
            eprintln!("onbeat: {news}");
        }
    }
    match log {
        Some(log) if any => log.flush(),
        _ => Ok(()),
    }
}

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

fn about(task: &Task, why: &impl Display) -> String {
    format!("{} ({}): {why}", task.comm, task.id)
}

fn write_line(log: &mut Option<impl Write>, entry: &impl Serialize) -> io::Result<()> {
    let Some(log) = log else {
        return Ok(());
    };
    serde_json::to_writer(&mut *log, entry)?;
    log.write_all(b"\n")
}
