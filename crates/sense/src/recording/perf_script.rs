//! How a line of `perf script` begins (of `perf record -e 'sched:*'` or `perf sched record`):
//! `  mplayer 14149 [000]   928.247428:   sched:sched_switch: ...`, with the process before the
//! thread (`14149/14150`) if it was asked for, and without the CPU if it was not recorded.

use super::sched_text::{Content, Head, split_at_time};

/// Advice for a broken line.
pub(super) const ADVICE: &str = "remove the line, or write the text again with 'perf script'";

/// A number that no thread has.
const GONE: u32 = u32::MAX;

/// The kind of the line.
pub(super) fn content(line: &str) -> Content<'_> {
    let trimmed = line.trim();
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return Content::Nothing;
    }
    match head(line) {
        Some(head) => match head.event.strip_prefix("PERF_RECORD_") {
            None => Content::Event(head),
            Some(record) => lost(record).map_or(Content::Nothing, Content::Lost),
        },
        None if is_call(line) => Content::Nothing,
        None => Content::Broken,
    }
}

/// `LOST lost 45` and `LOST_SAMPLES lost 45`: how many.
fn lost(record: &str) -> Option<u64> {
    let (kind, count) = record.split_once(" lost ")?;
    (kind.starts_with("LOST")).then_some(count.trim().parse().ok()?)
}

/// A line of a call chain: an address, and what is there.
fn is_call(line: &str) -> bool {
    let address = line.split_ascii_whitespace().next().unwrap_or("");
    line.starts_with([' ', '\t'])
        && address.len() >= 4
        && address.bytes().all(|b| b.is_ascii_hexdigit())
}

/// A thread's number; perf writes -1 for one that is already gone.
fn thread(number: &str) -> Option<u32> {
    match number {
        "-1" => Some(GONE),
        number => number.parse().ok(),
    }
}

fn head(line: &str) -> Option<Head<'_>> {
    let (before, at, event) = split_at_time(line)?;
    let before = before.trim_end();
    let (who, cpu) = match before.strip_suffix(']').and_then(|b| b.rsplit_once('[')) {
        Some((who, cpu)) => (who.trim_end(), Some(cpu.parse().ok()?)),
        None => (before, None),
    };
    let (_, number) = who.rsplit_once(|c: char| c.is_ascii_whitespace())?;
    let (pid, tid) = match number.split_once('/') {
        Some((pid, tid)) => (Some(thread(pid)?), tid),
        None => (None, number),
    };
    let event = event.trim_start();
    let period = event.split_ascii_whitespace().next().unwrap_or("");
    let event = match period.parse::<u64>() {
        Ok(_) => event.strip_prefix(period).unwrap_or(event).trim_start(),
        Err(_) => event,
    };
    Some(Head {
        tid: thread(tid)?,
        cpu,
        pid,
        by_thread: false,
        at,
        event,
    })
}
