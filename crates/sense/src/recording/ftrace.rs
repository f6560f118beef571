//! How a line of ftrace's text begins (the kernel's `trace` file, `trace-cmd report`):
//! `  mplayer-14149 [000] d..2.   928.247428: sched_switch: ...`, with the process in brackets
//! after the thread if `record-tgid` is on, and without the flags if `irq-info` is off.

use super::sched_text::{Content, Head, split_at_time};

/// Advice for a broken line.
pub(super) const ADVICE: &str = "remove the line, or record again with the clock 'mono'";

/// The kind of the line.
pub(crate) fn content(line: &str) -> Content<'_> {
    if let Some(header) = line.strip_prefix('#') {
        return overwritten(header).map_or(Content::Nothing, Content::LostBefore);
    }
    let trimmed = line.trim();
    if trimmed.is_empty() || trimmed.starts_with("=>") {
        return Content::Nothing;
    }
    if let Some(head) = head(line) {
        return Content::Event(head);
    }
    lost(trimmed).map_or_else(
        || {
            if is_banner(trimmed) {
                Content::Nothing
            } else {
                Content::Broken
            }
        },
        Content::Lost,
    )
}

/// `entries-in-buffer/entries-written: 16128/20000   #P:2`: how many were overwritten.
fn overwritten(header: &str) -> Option<u64> {
    let (_, counts) = header.split_once("entries-in-buffer/entries-written:")?;
    let (kept, written) = counts.split_whitespace().next()?.split_once('/')?;
    let missing = written
        .parse::<u64>()
        .ok()?
        .saturating_sub(kept.parse().ok()?);
    (missing > 0).then_some(missing)
}

/// `CPU:1 [LOST 123 EVENTS]`, also without a number, and trace-cmd's `[123 EVENTS DROPPED]`.
fn lost(line: &str) -> Option<u64> {
    let (_, what) = line.strip_prefix("CPU:")?.split_once(" [")?;
    let what = what.strip_suffix(']')?;
    if !(what.contains("LOST") || what.contains("DROPPED")) {
        return None;
    }
    let number = what.split_whitespace().find_map(|word| word.parse().ok());
    Some(number.unwrap_or(1))
}

/// The lines of trace-cmd before the first event.
fn is_banner(line: &str) -> bool {
    let number = |text: &str| text.trim().parse::<u64>().is_ok();
    line.strip_prefix("cpus=").is_some_and(number)
        || line.strip_prefix("version =").is_some_and(number)
        || line
            .strip_prefix("CPU ")
            .and_then(|rest| rest.strip_suffix(" is empty"))
            .is_some_and(number)
}

fn head(line: &str) -> Option<Head<'_>> {
    let (before, at, event) = split_at_time(line)?;
    let (before, flags) = match before.trim_end() {
        whole if whole.ends_with(']') => (whole, ""),
        whole => whole.rsplit_once(|c: char| c.is_ascii_whitespace())?,
    };
    let (who, cpu) = before.trim_end().strip_suffix(']')?.rsplit_once('[')?;
    let cpu = cpu.parse().ok()?;
    let who = who.trim_end();
    let (who, pid) = match who.strip_suffix(')').and_then(|who| who.rsplit_once('(')) {
        Some((rest, pid)) => (rest.trim_end(), pid.trim().parse().ok()),
        None => (who, None),
    };
    let (comm, tid) = who.rsplit_once('-')?;
    if tid == "1" && comm.ends_with([' ', '/']) {
        // perf's number for a thread that is gone: `:-1 -1 [000]` or `:-1 5/-1 [000]`.
        return None;
    }
    let in_interrupt = flags.contains(['h', 'H', 's', 'z', 'Z']);
    Some(Head {
        tid: tid.parse().ok()?,
        cpu: Some(cpu),
        pid,
        by_thread: !in_interrupt,
        at,
        event: event.trim_start(),
    })
}
