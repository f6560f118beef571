//! How things stand, once: for a person without a terminal, and for a script.

use onbeat_model::{Bandwidth, Instant, Reservation, Span};
use serde::Serialize;

use crate::application::ShownApplication;
use crate::columns;
use crate::model::ThreadRow;
use crate::thread::ShownThread;
use crate::{Align, Model, text};

#[derive(Serialize)]
struct TopLine<'a> {
    tid: u32,
    started_ticks: u64,
    pid: u32,
    application: u32,
    comm: String,
    user: Option<u32>,
    state: &'static str,
    period_ns: Option<Span>,
    confidence: f64,
    bandwidth_used: Option<Bandwidth>,
    reservation: Option<Reservation>,
    jobs: u64,
    counted_from_ns: Option<Instant>,
    missed: u64,
    exhaustions: u64,
    response_p50_ns: Option<Span>,
    response_p95_ns: Option<Span>,
    path: String,
    why: &'a str,
}

pub fn as_lines(model: &Model) -> Result<String, serde_json::Error> {
    let mut text = String::new();
    for thread in rows(model) {
        let seen = &thread.seen;
        let line = TopLine {
            tid: seen.task.id.tid,
            started_ticks: seen.task.id.started_ticks,
            pid: seen.task.pid,
            application: seen.served.application,
            comm: seen.task.comm.to_text(),
            user: seen.present.user,
            state: seen.state.name(),
            period_ns: seen.period,
            confidence: seen.confidence,
            bandwidth_used: thread.used(),
            reservation: seen.present.reservation,
            jobs: seen.counted.jobs,
            counted_from_ns: seen.counted.counted_from,
            missed: seen.counted.missed,
            exhaustions: seen.reservations.exhaustions,
            response_p50_ns: thread.response(0.50),
            response_p95_ns: thread.response(0.95),
            path: thread.path(),
            why: &seen.present.why,
        };
        text += &serde_json::to_string(&line)?;
        text.push('\n');
    }
    Ok(text)
}

pub fn as_table(model: &Model) -> (Vec<(&'static str, Align)>, Vec<Vec<String>>) {
    let left = |heading| (heading, Align::Left);
    let right = |heading| (heading, Align::Right);
    let mut headings = vec![left("application, thread"), right("id"), left("state")];
    headings.extend(["period", "used", "reserved", "missed", "p95"].map(right));
    headings.push(left("why"));
    let optional = |shown: Option<String>| shown.unwrap_or_else(|| "-".to_owned());
    let row = |thread: &ShownThread| {
        let seen = &thread.seen;
        vec![
            model.indented(thread),
            seen.task.id.to_string(),
            columns::state(seen.state).to_owned(),
            optional(seen.period.map(|period| period.to_string())),
            optional(thread.used().map(|used| used.to_string())),
            optional(thread.reserved().map(|reserved| reserved.to_string())),
            seen.counted.missed.to_string(),
            optional(thread.response(0.95).map(|span| span.to_string())),
            text::harmless(&thread.reason()),
        ]
    };
    let sums = |application: &ShownApplication| {
        let none = String::new;
        vec![
            application.name(),
            application.sums.pid.to_string(),
            none(),
            none(),
            application.used().to_string(),
            optional(application.reserved.map(|reserved| reserved.to_string())),
            application.sums.missed.to_string(),
            none(),
            application.sums.served(),
        ]
    };
    let rows = model.table().into_iter().filter_map(|of| match of {
        ThreadRow::Application(pid) => model.applications.get(&pid).map(sums),
        ThreadRow::Thread(id) => model.threads.get(&id).map(row),
    });
    (headings, rows.collect())
}

fn rows(model: &Model) -> impl Iterator<Item = &ShownThread> {
    model.rows.iter().filter_map(|id| model.threads.get(id))
}
