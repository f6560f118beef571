//! Recordings as text of the kernel's scheduling events: one loop over the lines for ftrace and for
//! `perf script`, which differ only in how a line begins.

use std::collections::HashMap;

use onbeat_model::Instant;

use super::bursts::{Builder, Built};
use super::lines::Lines;

use super::{Format, Recording, ReplayError, ftrace, perf_script};
use crate::raw::{self, Raw, What};

/// How a line begins: who wrote which event, and when.
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

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// An event.
    Event(Head<'a>),
    /// The recorder lost so many events here.
    Lost(u64),
    /// So many events were overwritten before the recording's first one.
    LostBefore(u64),
    /// A comment, a header, a line of a call chain.
    Nothing,
    /// None of these.
    Broken,
}

/// Splits a line at its time stamp (`seconds.fraction:`): what comes before, the time, what follows.
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
pub(super) fn read(lines: &mut Lines<'_>, format: Format) -> Result<Recording, ReplayError> {
    let (content, advice): (fn(&str) -> Content<'_>, _) = match format {
        Format::PerfScript => (perf_script::content, perf_script::ADVICE),
        _ => (ftrace::content, ftrace::ADVICE),
    };
    let path = lines.path().to_owned();
    let mut raws: Vec<Raw> = Vec::new();
    let mut process_of = HashMap::new();
    let mut span: Option<(Instant, Instant)> = None;
    let mut lost_before = 0_u64;
    let mut warnings = Vec::new();
    while let Some(line) = lines.next()? {
        if !line.ended {
            warnings.push(format!(
                "line {} is cut off: it is left out, and the recording ends before it",
                line.number
            ));
            break;
        }
        let broken = |problem: &str| ReplayError::BrokenLine {
            path: path.clone(),
            line: line.number,
            problem: format!("{problem}: '{}'; {advice}", excerpt(&line.text)),
        };
        let raw = match content(&line.text) {
            Content::Nothing => continue,
            Content::Broken => {
                return Err(broken(
                    "this is no line of a recording, or its time is impossible",
                ));
            }
            Content::LostBefore(count) => {
                lost_before = lost_before.saturating_add(count);
                continue;
            }
            Content::Lost(count) => Raw {
                at: span.map_or(Instant::ZERO, |(_, last)| last),
                cpu: None,
                current: 0,
                what: What::Lost { count },
            },
            Content::Event(head) => {
                if let Some(pid) = head.pid {
                    process_of.insert(head.tid, pid);
                }
                let (first, last) = span.unwrap_or((head.at, head.at));
                span = Some((first.min(head.at), last.max(head.at)));
                let (name, fields) = head.event.split_once(": ").unwrap_or((head.event, ""));
                let name = name.trim().trim_end_matches(':');
                let name = name.rsplit(':').next().unwrap_or(name);
                let waker = if head.by_thread { head.tid } else { 0 };
                Raw {
                    at: head.at,
                    cpu: head.cpu,
                    current: head.tid,
                    what: raw::parse(name, fields, waker).map_err(|_| {
                        broken(&format!("the fields of {name} are not those of the kernel"))
                    })?,
                }
            }
        };
        raws.push(raw);
    }
    raws.sort_by_key(|raw| raw.at);
    let mut builder = Builder::default();
    for raw in raws {
        builder.hear(raw);
    }
    let built = builder.finish(&process_of);
    let (began, ended) = span.unwrap_or_default();
    Ok(recording(
        built,
        format,
        (began, ended),
        lost_before,
        warnings,
    ))
}

fn recording(
    built: Built,
    format: Format,
    (began, ended): (Instant, Instant),
    lost_before: u64,
    mut warnings: Vec<String>,
) -> Recording {
    if built.lost > 0 {
        warnings.push(format!(
            "the recorder lost {} events in between; bursts around the gaps are left out",
            built.lost
        ));
    }
    if lost_before > 0 {
        warnings.push(format!(
            "the recorder overwrote {lost_before} events before the first one: a larger buffer keeps them"
        ));
    }
    Recording {
        format,
        facts: None,
        tasks: built.tasks,
        events: built.events,
        began,
        ended,
        lost: built.lost.saturating_add(lost_before),
        warnings,
        parents: built.parents,
    }
}

/// The beginning of a line, for a message.
pub(super) fn excerpt(line: &str) -> String {
    const SHOWN: usize = 60;
    let mut text: String = line
        .trim()
        .chars()
        .take(SHOWN)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if line.trim().chars().nth(SHOWN).is_some() {
        text.push_str("...");
    }
    text
}
