//! Recordings as text of the kernel's scheduling events: one loop over the lines for ftrace and for
//! `perf script`, which differ only in how a line begins.

use onbeat_model::Instant;

use super::collected::Collected;
use super::lines::Lines;
use super::{Format, ReadError, Recording, ftrace, perf_script};
use crate::switch_event::{self, Raw};

/// How many characters of a line a message shows. With what the message says before it, a line of a
/// terminal.
const EXCERPT: usize = 60;

/// How a line begins: the writer, the event and the time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    /// The thread that ran on the CPU where the event was written.
    pub(crate) tid: u32,
    /// That CPU, where the line tells.
    pub(crate) cpu: Option<u32>,
    /// The thread's process, where the line tells.
    pub(crate) pid: Option<u32>,
    /// It was that thread which caused the event, as far as the line tells: no interrupt did.
    pub(crate) by_thread: bool,
    /// When.
    pub(crate) at: Instant,
    /// The event's name and its fields.
    pub(crate) event: &'a str,
}

/// The kind of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// An event.
    Event(Head<'a>),
    /// The recorder lost this number of events here.
    Lost(u64),
    /// This number of events was overwritten before the recording's first one.
    LostBefore(u64),
    /// A comment, a header, a line of a call chain.
    Nothing,
    /// None of these.
    Broken,
}

/// Splits a line at its time stamp (`seconds.fraction:`): what comes before, the time, what
/// follows.
///
/// # Errors
/// `None` if there is none, or it is beyond what nanoseconds in 64 bits hold.
pub(super) fn split_at_time(line: &str) -> Option<(&str, Instant, &str)> {
    for (colon, _) in line.match_indices(':') {
        let (before, after) = line.split_at(colon);
        let Some((before, time)) = before.rsplit_once(|c: char| c.is_ascii_whitespace()) else {
            continue;
        };
        let after = after.strip_prefix(':').unwrap_or(after);
        if !(after.is_empty() || after.starts_with(|c: char| c.is_ascii_whitespace())) {
            continue;
        }
        if let Some((seconds, fraction)) = time.split_once('.') {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            if digits(seconds) && digits(fraction) && fraction.len() <= 9 {
                let scale = 10_u64.pow(9 - fraction.len() as u32);
                let ns = fraction.parse::<u64>().ok()?.checked_mul(scale)?;
                let at = (seconds.parse::<u64>().ok()?)
                    .checked_mul(1_000_000_000)?
                    .checked_add(ns)?;
                return Some((before, Instant::from_ns(at), after));
            }
        }
    }
    None
}

/// Reads a whole recording.
pub(super) fn read(lines: &mut Lines<'_>, format: Format) -> Result<Recording, ReadError> {
    let (content, advice): (fn(&str) -> Content<'_>, _) = match format {
        Format::PerfScript => (perf_script::content, perf_script::ADVICE),
        _ => (ftrace::content, ftrace::ADVICE),
    };
    let path = lines.path().to_owned();
    let mut collected = Collected::default();
    while let Some(line) = lines.next()? {
        if !line.ended {
            collected.cut_off(&format!("line {}", line.number));
            break;
        }
        let content = content(&line.text);
        take(content, &mut collected).map_err(|problem| ReadError::BrokenLine {
            path: path.clone(),
            line: line.number,
            problem: format!("{problem}: '{}'; {advice}", excerpt(&line.text)),
        })?;
    }
    Ok(collected.into_recording(format))
}

/// Takes in what a line holds.
///
/// # Errors
/// If it is broken: what is wrong with it.
pub(super) fn take(content: Content<'_>, collected: &mut Collected) -> Result<(), String> {
    match content {
        Content::Nothing => {}
        Content::Broken => {
            return Err("this is no line of a recording, or its time is impossible".into());
        }
        Content::LostBefore(count) => collected.lost_before(count),
        Content::Lost(count) => collected.lost(count),
        Content::Event(head) => {
            if let Some(pid) = head.pid {
                collected.process(head.tid, pid);
            }
            let (name, fields) = head.event.split_once(": ").unwrap_or((head.event, ""));
            let name = name.trim().trim_end_matches(':');
            let name = name.rsplit(':').next().unwrap_or(name);
            let waker = if head.by_thread { head.tid } else { 0 };
            collected.event(Raw {
                at: head.at,
                cpu: head.cpu,
                current: head.tid,
                what: switch_event::parse(name, fields, waker)
                    .map_err(|_| format!("the fields of {name} are not those of the kernel"))?,
            });
        }
    }
    Ok(())
}

/// The beginning of a line, for a message.
pub(super) fn excerpt(line: &str) -> String {
    let mut text: String = line
        .trim()
        .chars()
        .take(EXCERPT)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if line.trim().chars().nth(EXCERPT).is_some() {
        text.push_str("...");
    }
    text
}
