//! LTTng's kernel traces as the text of babeltrace2 (or babeltrace):
//! `[14:29:05.847291532] (+0.000012843) host sched_switch: { cpu_id = 2 }, { prev_comm = "nginx", ... }`,
//! with the fields of added contexts (`tid`, `procname` ...) in braces of their own before those of
//! the event.
//!
//! The host may be left out, and the time may be in seconds (`--clock-seconds`) or have its date
//! (`--clock-date`).

mod fields;

use std::borrow::Cow;

use onbeat_model::Instant;

use crate::recording::collected::Collected;
use crate::switch_event::{self, Fields, Raw, UNTOLD};
use fields::{LttngFields, LttngValue};

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;

struct LttngLine<'a> {
    /// Since whenever the clock began: the epoch or, without a date, midnight.
    ns: u64,
    event: &'a str,
    /// From the first brace on.
    fields: &'a str,
}

/// The event of such a line, or what is wrong with it; none if the line is no such.
pub(super) fn event(
    line: &str,
    clock: &mut DayClock,
    collected: &mut Collected,
) -> Option<Result<Raw, String>> {
    let head = head(line)?;
    let malformed = || format!("the fields of {} are not those of LTTng", head.event);
    Some(raw(&head, clock, collected).ok_or_else(malformed))
}

fn raw(head: &LttngLine<'_>, clock: &mut DayClock, collected: &mut Collected) -> Option<Raw> {
    let fields = LttngFields::read(head.fields)?;
    let current = fields.context("tid").or_else(|| fields.event("perf_tid"));
    // perf writes -1 for the number of a thread that is already gone.
    let current = current.and_then(LttngValue::tid).unwrap_or(UNTOLD);
    let pid = fields.context("pid").or_else(|| fields.event("perf_pid"));
    if let Some(pid) = pid.and_then(LttngValue::tid).filter(|_| current != UNTOLD) {
        collected.process(current, pid);
    }
    if head.event == "lttng_statedump_process_state" {
        let (tid, pid) = (fields.event("tid")?.tid()?, fields.event("pid")?.tid()?);
        collected.process(tid, pid);
    }
    Some(Raw {
        at: clock.at(head.ns)?,
        cpu: fields.cpu(),
        current,
        // In an interrupt or not: LTTng does not tell, so there is no waker.
        what: switch_event::of_fields(head.event, &fields, 0)?,
    })
}

/// perf's names are those of the kernel, in which a thread's number is a `pid`; LTTng says `tid`.
impl Fields for LttngFields<'_> {
    fn number(&self, name: &str) -> Option<i64> {
        let field = || self.event(name);
        let tids = name.strip_suffix("pid").map(|of| format!("{of}tid"));
        let field = tids.and_then(|name| self.event(&name)).or_else(field);
        field?.number()
    }

    fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.event(name)?.text()
    }
}

fn head(line: &str) -> Option<LttngLine<'_>> {
    let (time, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(delta) => delta.split_once(')')?.1,
        None => rest,
    };
    let (who, fields) = rest.split_at_checked(rest.find(": {")?)?;
    Some(LttngLine {
        ns: ns_of(time)?,
        // perf's have their system in front.
        event: who.rsplit([' ', ':']).next()?,
        fields: fields.strip_prefix(": ")?,
    })
}

/// `14:29:05.847291532`, with or without a date, or `1750878545.847291532`.
fn ns_of(time: &str) -> Option<u64> {
    let digits = |text: &str| {
        let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        all.then(|| text.parse::<u64>().ok())?
    };
    let (whole, fraction) = time.trim().split_once('.')?;
    let fraction = digits(fraction).filter(|_| fraction.len() == 9)?;
    let seconds = match whole.rsplit_once(':') {
        None => digits(whole)?,
        Some((hours_and_minutes, seconds)) => {
            let (hours, minutes) = hours_and_minutes.split_once(':')?;
            let (date, hours) = match hours.rsplit_once(' ') {
                Some((date, hours)) => (day(date)?, hours),
                None => (0, hours),
            };
            let (hours, minutes, seconds) = (digits(hours)?, digits(minutes)?, digits(seconds)?);
            if hours > 23 || minutes > 59 || seconds > 60 {
                return None;
            }
            date.checked_mul(86_400)? + hours * 3600 + minutes * 60 + seconds
        }
    };
    seconds.checked_mul(SECOND_NS)?.checked_add(fraction)
}

/// The days from 1970 to `2026-03-24`, in the Gregorian calendar.
fn day(date: &str) -> Option<u64> {
    let mut parts = date.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some()
        || !(1970..=9999).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
    {
        return None;
    }
    // Years that begin in March end with the day that is not in each of them.
    let (year, month) = if month < 3 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    // From March of the year 0 to 1970.
    days.checked_sub(719_468)
}

/// Where times have no date, they begin anew at midnight.
#[derive(Default)]
pub(super) struct DayClock {
    days_ns: u64,
    last_ns: u64,
}

impl DayClock {
    /// babeltrace writes events in order: one that is half a day earlier than the one before is of
    /// the next day.
    fn at(&mut self, ns: u64) -> Option<Instant> {
        if ns < DAY_NS && self.last_ns < DAY_NS && ns + DAY_NS / 2 < self.last_ns {
            self.days_ns = self.days_ns.checked_add(DAY_NS)?;
        }
        self.last_ns = ns;
        ns.checked_add(self.days_ns).map(Instant::from_ns)
    }
}

impl LttngValue<'_> {
    fn tid(self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_a_date_and_in_seconds() {
        let ns = 14 * 3600 * SECOND_NS + 29 * 60 * SECOND_NS + 5_847_291_532;
        assert_eq!(ns_of("14:29:05.847291532"), Some(ns));
        assert_eq!(ns_of("1970-01-02 14:29:05.847291532"), Some(DAY_NS + ns));
        assert_eq!(
            ns_of("1774326545.000000001"),
            Some(1_774_326_545_000_000_001)
        );
        let leap = ns_of("2024-02-29 00:00:00.000000000").unwrap();
        assert_eq!(leap, 1_709_164_800 * SECOND_NS);
        for none in [
            "",
            "14:29:05",
            "24:00:00.000000000",
            "1:2:3:4.000000000",
            "5.84",
            "2026-13-01 00:00:00.000000000",
        ] {
            assert_eq!(ns_of(none), None, "{none}");
        }
    }
}
