//! The table that `watch` ends with.

use std::fmt::Write;

use onbeat_model::{Quantiles, Span};

use crate::history::RecordedThread;
use onbeat_command::table::TextTable;
use onbeat_top::Align;

pub(crate) fn of(threads: &[RecordedThread]) -> String {
    let numbers = [
        "tid",
        "period",
        "confidence",
        "jobs",
        "demand p50",
        "p95",
        "max",
        "response p50",
        "p95",
        "max",
        "late",
    ];
    let mut columns = vec![("thread", Align::Left)];
    columns.extend(numbers.map(|heading| (heading, Align::Right)));
    let mut table = TextTable::new(&columns);
    let mut without = 0;
    for thread in threads {
        let Some(period) = thread.period_ns else {
            without += 1;
            continue;
        };
        let [d50, d95, d100] = cells(thread.demand.as_ref());
        let [r50, r95, r100] = cells(thread.response_time.as_ref());
        table.row([
            thread.task.comm.to_text(),
            thread.task.id.to_string(),
            period.to_string(),
            confidence(thread.confidence),
            thread.jobs.to_string(),
            d50,
            d95,
            d100,
            r50,
            r95,
            r100,
            thread.missed.to_string(),
        ]);
    }
    let mut text = String::new();
    if without < threads.len() {
        text.push_str(&table.to_string());
    }
    // Writing to a string cannot fail.
    let _ = match without {
        0 => Ok(()),
        1 => writeln!(text, "1 thread had no period."),
        n => writeln!(text, "{n} threads had no period."),
    };
    text
}

/// Cut, not rounded: what is not certain must not read 100%.
pub(crate) fn confidence(confidence: f64) -> String {
    format!("{:.2}%", (confidence * 10_000.0).floor() / 100.0)
}

fn cells(quantiles: Option<&Quantiles>) -> [String; 3] {
    let cell = |of: fn(&Quantiles) -> Span| {
        quantiles.map_or("-".to_owned(), |quantiles| of(quantiles).to_string())
    };
    [cell(|q| q.p50_ns), cell(|q| q.p95_ns), cell(|q| q.max_ns)]
}
