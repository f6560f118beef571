//! The table that `run` and `attach` end with.

use std::fmt::Write;

use onbeat_control::{AtSpeed, Report, ResponseTimes, State, ThreadReport};
use onbeat_model::{Bandwidth, Span};

use crate::table::{Align, Table};

/// The most threads that are listed; the rest is in the report.
const MOST_ROWS: usize = 40;

/// The figures of the threads that had a rhythm, and a line on what onbeat itself used.
pub(crate) fn of(report: &Report, own: Bandwidth, energy_uj: Option<u64>) -> String {
    let mut text = String::new();
    if !report.threads.is_empty() {
        text.push_str(&table(&report.threads).to_string());
    }
    let mut closing = Vec::new();
    let unlisted = report.threads.len().saturating_sub(MOST_ROWS);
    if unlisted > 0 {
        closing.push(format!("{unlisted} more periodic threads, see --report"));
    }
    if report.earlier.threads > 0 {
        let earlier = &report.earlier;
        closing.push(format!(
            "{} more that ended earlier, with {} jobs, {} missed",
            earlier.threads, earlier.jobs, earlier.missed
        ));
    }
    closing.push(match report.left_alone {
        0 => "no thread is without a rhythm".to_owned(),
        1 => "1 thread has no rhythm".to_owned(),
        n => format!("{n} threads have no rhythm"),
    });
    match report.protected {
        0 => {}
        1 => closing.push("1 thread had nice -20 while it had no reservation".to_owned()),
        n => closing.push(format!(
            "{n} threads had nice -20 while they had no reservation"
        )),
    }
    if report.lost_events > 0 {
        closing.push(format!("{} events were lost", report.lost_events));
    }
    if let Some(speeds) = speeds(&report.speeds) {
        closing.push(speeds);
    }
    if let Some(energy_uj) = energy_uj {
        closing.push(energy(energy_uj, report.elapsed));
    }
    closing.push(format!("onbeat itself used {own} of a CPU"));
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}.", closing.join("; "));
    text
}

/// `the CPUs ran at 1500 MHz for 12 s and at 2400 MHz for 3 s`.
fn speeds(speeds: &[AtSpeed]) -> Option<String> {
    let times = speeds
        .iter()
        .map(|AtSpeed { speed, time }| format!("at {speed} for {:.1} s", time.as_secs_f64()));
    let times: Vec<String> = times.collect();
    (!times.is_empty()).then(|| format!("the CPUs ran {}", times.join(", ")))
}

/// `the processors took 120.5 J (4.1 W)`.
fn energy(energy_uj: u64, elapsed: Span) -> String {
    let joules = energy_uj as f64 / 1e6;
    let watts = joules / elapsed.as_secs_f64().max(1e-3);
    format!("the processors took {joules:.1} J ({watts:.1} W)")
}

fn table(threads: &[ThreadReport]) -> Table {
    let mut table = Table::new(&[
        ("thread", Align::Left),
        ("tid", Align::Right),
        ("period", Align::Right),
        ("jobs", Align::Right),
        ("p50", Align::Right),
        ("p95", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
        ("missed", Align::Right),
        ("used", Align::Right),
        ("reserved", Align::Right),
        ("changes", Align::Right),
        ("", Align::Left),
    ]);
    for thread in threads.iter().take(MOST_ROWS) {
        let time = |of: fn(&ResponseTimes) -> Span| {
            thread
                .response_time
                .as_ref()
                .map_or("-".to_owned(), |times| of(times).to_string())
        };
        table.row([
            thread.task.comm.to_text(),
            thread.task.id.to_string(),
            thread.period.to_string(),
            thread.jobs.to_string(),
            time(|t| t.p50),
            time(|t| t.p95),
            time(|t| t.p99),
            time(|t| t.max),
            thread.missed.to_string(),
            share(thread, thread.bandwidth_used),
            share(thread, thread.bandwidth_reserved),
            thread.changes.to_string(),
            remark(thread),
        ]);
    }
    table
}

/// A thread that never held a reservation has nothing to compare.
fn share(thread: &ThreadReport, share: Bandwidth) -> String {
    if thread.held.is_zero() {
        "-".to_owned()
    } else {
        share.to_string()
    }
}

fn remark(thread: &ThreadReport) -> String {
    let stage = thread
        .stage
        .filter(|_| !matches!(thread.state, State::Refused | State::TakenOver));
    if let Some(stage) = stage {
        return stage.to_string();
    }
    let remark = match thread.state {
        State::Kept | State::Watched | State::Ended => "",
        State::AskedFor => "asked for",
        State::OnTrial => "on trial",
        State::Refused => "no reservation: refused",
        State::Released => "lost its rhythm",
        State::TakenOver => "changed by another program",
    };
    remark.to_owned()
}
