//! The page of `onbeat report`: one HTML file without scripts, fonts or anything else from
//! elsewhere.
//!
//! Everything that comes from the report is escaped: a thread may call itself what it likes.

mod input;
mod plot;
mod thread;

use std::fmt::Write;

use onbeat_control::{Application, ThreadReport};
use onbeat_model::{Instant, Span};

pub(crate) use input::{PageDecision, PageRun};

const STYLE: &str = include_str!("style.css");
/// The threads that used most CPU time are drawn; all are in the table.
const MOST_DRAWN: usize = 32;

pub(crate) fn of(run: &PageRun, title: &str) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>onbeat: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n",
        title = escaped(title)
    );
    page += &summary(run);
    let begin = run.begins();
    page += &threads(run, begin);
    for thread in run
        .threads
        .iter()
        .filter(|t| run.has_history(t))
        .take(MOST_DRAWN)
    {
        page += &thread::section(run, thread, begin);
    }
    page += &speeds(run, begin);
    page += "</body>\n</html>\n";
    page
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            _ => out.push(c),
        }
    }
    out
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn shown(span: Span) -> String {
    span.to_string()
}

fn optional<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}

fn summary(run: &PageRun) -> String {
    let with_period = run.threads.iter().filter(|thread| thread.period.is_some());
    let with_period = counted(with_period.count() as u64, "thread");
    let mut text = format!("<p>{with_period} with a period in {}.", run.elapsed_ns);
    if let Some(others) = run.left_alone {
        let _ = write!(text, " {} left alone.", counted(others, "other"));
    }
    if run.lost_events > 0 {
        let lost = counted(run.lost_events, "event");
        let _ = write!(text, " {lost} lost: what follows has gaps.");
    }
    if let Some(own) = run.loop_cpu {
        let _ = write!(text, " onbeat itself took {:.2}% of a CPU.", own * 100.0);
    }
    text + "</p>\n"
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A table with these headings; cells are HTML already.
fn table(headings: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = "<div class=\"wide\"><table>\n<thead><tr>".to_owned();
    for heading in headings {
        let _ = write!(text, "<th>{heading}</th>");
    }
    text += "</tr></thead>\n<tbody>\n";
    for row in rows {
        text += "<tr>";
        for cell in row {
            let _ = write!(text, "<td>{cell}</td>");
        }
        text += "</tr>\n";
    }
    text + "</tbody></table></div>\n"
}

fn threads(run: &PageRun, begin: Instant) -> String {
    let bold = |text: String| format!("<b>{text}</b>");
    let none = String::new;
    let sums = |application: &Application| {
        vec![
            bold(escaped(&application.comm.to_text())),
            bold(application.pid.to_string()),
            application.served(),
            none(),
            application.jobs.to_string(),
            none(),
            missed(application.missed, application.jobs),
            none(),
            none(),
            none(),
            none(),
            percent(application.bandwidth_used.as_cpus()),
            percent(application.bandwidth_reserved.as_cpus()),
        ]
    };
    let row = |thread: &ThreadReport| {
        let name = escaped(&thread.task.comm.to_text());
        let linked = if run.has_history(thread) {
            format!("<a href=\"#thread-{}\">{name}</a>", thread.task.id)
        } else {
            name
        };
        let times = thread.response_time.as_ref();
        let counted = thread.counted;
        // One that never held a reservation has nothing to compare.
        let reservations = &thread.reservations;
        let held = Some(reservations).filter(|figures| !figures.held.is_zero());
        vec![
            linked,
            thread.task.id.to_string(),
            thread.state.name().to_owned(),
            optional(thread.period, shown),
            counted.jobs.to_string(),
            optional(counted.counted_from, |from| seconds(from, begin)),
            missed(counted.missed, counted.jobs),
            optional(times, |times| shown(times.p50_ns)),
            optional(times, |times| shown(times.p95_ns)),
            optional(times, |times| shown(times.p99_ns)),
            optional(times, |times| shown(times.max_ns)),
            optional(held, |of| percent(of.bandwidth_used.as_cpus())),
            optional(held, |of| percent(of.bandwidth_reserved.as_cpus())),
        ]
    };
    let mut rows = Vec::new();
    for application in &run.applications {
        let threads = run.threads.iter();
        let mut threads = threads
            .filter(|thread| thread.served.application == application.pid)
            .peekable();
        if threads.peek().is_some() {
            rows.push(sums(application));
        }
        rows.extend(threads.map(row));
    }
    // Those of a report that has no applications.
    let is_known = |thread: &&ThreadReport| {
        let mut applications = run.applications.iter();
        applications.any(|application| application.pid == thread.served.application)
    };
    rows.extend(
        run.threads
            .iter()
            .filter(|thread| !is_known(thread))
            .map(row),
    );
    table(
        &[
            "name", "id", "state", "period", "jobs", "from", "missed", "p50", "p95", "p99",
            "longest", "used", "reserved",
        ],
        rows.into_iter(),
    )
}

fn missed(missed: u64, jobs: u64) -> String {
    match missed as f64 / jobs.max(1) as f64 {
        share if missed > 0 => format!("<span class=\"bad\">{missed} ({})</span>", percent(share)),
        _ => "0".to_owned(),
    }
}

fn speeds(run: &PageRun, begin: Instant) -> String {
    if run.speed_decisions.is_empty() {
        return String::new();
    }
    let mhz = |khz: u64| format!("{} MHz", khz / 1000);
    let rows = run.speed_decisions.iter().map(|entry| {
        vec![
            seconds(entry.at_ns, begin),
            escaped(&entry.what.replace('_', " ")),
            optional(entry.old_khz, mhz),
            optional(entry.new_khz, mhz),
            escaped(&entry.why),
        ]
    });
    format!(
        "<h2>Speed of the CPUs</h2>\n{}",
        table(&["at", "what", "from", "to", "why"], rows)
    )
}

fn seconds(at: Instant, begin: Instant) -> String {
    format!("{:.3} s", at.since(begin).as_secs_f64())
}

#[cfg(test)]
mod tests;
