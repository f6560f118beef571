//! Tells what a file is from how it begins.

use super::lines::Lines;
use super::sched_text::{Content, excerpt};
use super::{Format, ReadError, csv, ftrace, lttng, own, perf_script, perfetto, systrace};

/// The lines that are looked at for it. trace-cmd writes up to a line for each CPU before the first
/// event.
const LOOKED_AT: usize = 100;

/// The format of the file.
///
/// # Errors
/// If it is none that is known; says what it is instead, where that can be told.
pub(super) fn format(lines: &Lines<'_>) -> Result<Format, ReadError> {
    let head = lines.head();
    let no = |reason: String| ReadError::NotARecording {
        path: lines.path().to_owned(),
        reason,
    };
    if head.is_empty() {
        return Err(no(if lines.is_cut() {
            "its compressed data is cut off before the first line; copy or record it again".into()
        } else {
            "it is empty".into()
        }));
    }
    if head.starts_with(b"PERFILE2") || head.starts_with(b"PERFFILE") {
        return Err(no(
            "it is perf's binary data; turn it into text with 'perf script -i FILE > FILE.txt'"
                .into(),
        ));
    }
    if head.starts_with(b"\x17\x08\x44tracing") {
        return Err(no("it is trace-cmd's binary data; turn it into text with \
             'trace-cmd report -i FILE > FILE.txt'"
            .into()));
    }
    if perfetto::is_trace(head) {
        return Ok(Format::Perfetto);
    }
    let text = String::from_utf8_lossy(head);
    if systrace::is_page(&text) {
        return Ok(Format::Systrace);
    }
    if let Some(format) = text.lines().take(LOOKED_AT).find_map(of_line) {
        return Ok(format);
    }
    let first = text.lines().find(|line| !line.trim().is_empty());
    Err(no(format!(
        "it begins with '{}', which is neither ftrace text, nor perf script text, nor babeltrace2's text of a \
         kernel trace, nor a Perfetto trace, nor a time in nanoseconds (CSV), nor onbeat's own recording",
        excerpt(first.unwrap_or(""))
    )))
}

/// The format that a line is surely of.
fn of_line(line: &str) -> Option<Format> {
    if own::is_first_line(line) {
        Some(Format::Onbeat)
    } else if line.starts_with("# tracer:") || is_event(&ftrace::content(line)) {
        Some(Format::Ftrace)
    } else if is_event(&perf_script::content(line)) {
        Some(Format::PerfScript)
    } else if lttng::is_line(line) {
        Some(Format::Lttng)
    } else if csv::time(line).is_some() {
        Some(Format::Csv)
    } else {
        None
    }
}

fn is_event(content: &Content<'_>) -> bool {
    matches!(content, Content::Event(_) | Content::Lost(_))
}
