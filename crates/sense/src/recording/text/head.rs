//! How a line with an event begins, in the text of ftrace and of perf: who ran, where and when,
//! then the event. ftrace (the kernel's `trace` file, `trace-cmd report`, NuttX) joins a thread's
//! name and number, perf separates them:
//!
//! ```text
//!   mplayer-14149 [000] d..2.   928.247428: sched_switch: ...
//!   mplayer-14149 ( 1400) [000]   928.247428: sched_switch: ...        record-tgid, no irq-info
//!   mplayer-14149 [000]-0x9   928.247428: sched_switch: ...            trace-cmd report -R
//!   mplayer-14149   0d..2.   928.247428: (+17) sched_switch: ...       report -l --ts-diff
//!   mplayer 1400/14149 [000]   928.247428:   1 sched:sched_switch: ... perf script
//!  928.247428 |   0)  mplayer-14149 |  d..2. |   |  /* sched_switch: ... */   function_graph
//! ```

use onbeat_model::Instant;

use crate::recording::collected::IN_INTERRUPT;
use crate::switch_event::UNTOLD;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    /// The thread that ran on the CPU where the event was written; [`UNTOLD`] if it is not told.
    pub(crate) tid: u32,
    /// That CPU, where the line tells.
    pub(crate) cpu: Option<u32>,
    pub(crate) pid: Option<u32>,
    /// The line tells that this thread caused the event: no interrupt did.
    pub(crate) by_thread: bool,
    pub(super) is_perfs: bool,
    pub(crate) at: Instant,
    /// The event's name; empty if what follows the time has none.
    pub(crate) name: &'a str,
    pub(crate) fields: &'a str,
}

impl<'a> Head<'a> {
    /// A name may hold what looks like a time: the first time is taken that has a thread before it
    /// and an event behind it, then one without an event.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let mut nameless = None;
        for (colon, _) in line.match_indices(':') {
            let (before, after) = line.split_at(colon);
            let after = &after[1..];
            let (before, at) = before
                .trim_end()
                .rsplit_once(|c: char| c.is_ascii_whitespace())
                .unwrap_or(("", before));
            let Some(at) = time(at).filter(|_| after.starts_with([' ', '\t']) || after.is_empty())
            else {
                continue;
            };
            let (name, fields) = event(after.trim_start());
            match writer(before) {
                Some(head) if !name.is_empty() => {
                    return Some(Self {
                        at,
                        name,
                        fields,
                        ..head
                    });
                }
                Some(head) => nameless = nameless.or(Some(Self { at, fields, ..head })),
                None => {}
            }
        }
        nameless.or_else(|| graph(line))
    }
}

/// `928.247428`, also with a comma, as some languages write it.
pub(super) fn time(text: &str) -> Option<Instant> {
    let (seconds, fraction) = text.split_once(['.', ','])?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let ns = fraction.parse::<u64>().ok()? * 10_u64.pow(9 - fraction.len() as u32);
    let seconds = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    seconds.checked_add(ns).map(Instant::from_ns)
}

/// The name of an event, none for a record of perf's own, without its system, modifiers and terms
/// (`sched:sched_switch/call-graph=no/:`), and what follows; perf may write the period in front of
/// it, trace-cmd the time since the last event.
fn event(text: &str) -> (&str, &str) {
    let rest = match text.split_once(|c: char| c.is_ascii_whitespace()) {
        Some((first, rest))
            if first.bytes().all(|byte| byte.is_ascii_digit()) || first.starts_with("(+") =>
        {
            rest.trim_start()
        }
        _ => text,
    };
    let (name, fields) = match rest.split_once(": ") {
        Some(parts) => parts,
        None => (rest.strip_suffix(':').unwrap_or(" "), ""),
    };
    if name.contains(|c: char| c.is_ascii_whitespace()) || name.starts_with("PERF_RECORD_") {
        return ("", rest);
    }
    let words = || name.split(['/', ':']).filter(|word| !word.is_empty());
    let is_known = |word: &&str| word.starts_with("sched_") || word.starts_with("task_");
    let name = words().find(is_known).or_else(|| words().next_back());
    (name.unwrap_or(""), fields.trim())
}

fn writer<'a>(before: &str) -> Option<Head<'a>> {
    let before = before.trim_end();
    let bracketed = before.rsplit_once('[').and_then(|(thread, rest)| {
        let (cpu, flags) = rest.split_once(']')?;
        let head = writing_thread(thread)?;
        let is_interrupt = match flags.strip_prefix("-0x") {
            Some(bits) => u32::from_str_radix(bits, 16).ok()? & IN_INTERRUPT != 0,
            None => is_interrupt(flags),
        };
        // Without flags nobody knows.
        let by_thread = !head.is_perfs && !flags.trim().is_empty() && !is_interrupt;
        Some(Head {
            cpu: Some(cpu.parse().ok()?),
            by_thread,
            ..head
        })
    });
    bracketed.or_else(|| writing_thread(before)).or_else(|| {
        let (thread, cpu) = before.rsplit_once(|c: char| c.is_ascii_whitespace())?;
        let (cpu, flags) = cpu.split_at(cpu.find(|c: char| !c.is_ascii_digit())?);
        let head = writing_thread(thread).filter(|head| !head.is_perfs)?;
        Some(Head {
            cpu: Some(cpu.parse().ok()?),
            by_thread: !is_interrupt(flags),
            ..head
        })
    })
}

fn is_interrupt(flags: &str) -> bool {
    flags.contains(['h', 'H', 's', 'z', 'Z'])
}

/// `NAME-TID`, `NAME-TID (PID)`, `NAME TID`, `NAME PID/TID`, `TID`.
fn writing_thread<'a>(text: &str) -> Option<Head<'a>> {
    let text = text.trim_end();
    let (text, pid) = match text
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once('('))
    {
        Some((rest, pid)) => (rest.trim_end(), pid.trim().parse().ok()),
        None => (text, None),
    };
    // perf writes -1 for the number of a thread that is already gone.
    let number = |text: &str| match text {
        "-1" => Some(UNTOLD),
        text => text.parse().ok(),
    };
    let last = text.rsplit(|c: char| c.is_ascii_whitespace()).next()?;
    let (process, tid) = match last.split_once('/') {
        Some((pid, tid)) => (number(pid), tid),
        None => (None, last),
    };
    if let Some(tid) = number(tid).filter(|_| process.is_some() || tid == last) {
        let (pid, is_perfs) = (process, true);
        return Some(Head {
            tid,
            pid,
            is_perfs,
            ..Head::default()
        });
    }
    let tid = text.rsplit_once('-')?.1.parse().ok()?;
    Some(Head {
        tid,
        pid,
        ..Head::default()
    })
}

/// A line of the tracer `function_graph`, with the option `funcgraph-abstime`.
fn graph(line: &str) -> Option<Head<'_>> {
    let (before, said) = line.split_once("/* ")?;
    let mut columns = before.split('|');
    let at = time(columns.next()?.trim())?;
    let (cpu, thread) = columns.next()?.split_once(')')?;
    let head = writing_thread(thread);
    let (name, fields) = event(said.trim_end().strip_suffix("*/")?.trim());
    Some(Head {
        tid: head.map_or(UNTOLD, |head| head.tid),
        cpu: cpu.trim().parse().ok(),
        at,
        name,
        fields,
        ..Head::default()
    })
}
