//! Recordings as text: one reader for all that people's tools write, which decides in one place
//! what a line must have to be an event, and what may stand between events.
//!
//! An event is a line that begins as one of ftrace, perf ([`Head`]) or babeltrace ([`lttng`]) does.
//! A line that names a scheduling event and begins otherwise, or has other fields, is an event that
//! cannot be read: it counts as lost, and if there are many such, the recording is refused. All
//! other lines are passed over, and counted if they are not known to stand between events.

mod head;
mod lttng;

use super::collected::Collected;
use super::lines::Lines;
use super::{Format, ReadError, Recording};
use crate::switch_event::{self, Raw, SchedEvent};

pub(crate) use head::Head;

/// How many characters of a line a message shows. With what the message says before it, a line of a
/// terminal.
const EXCERPT: usize = 60;
/// More lines than these that are passed over are worth a warning: a tool's greeting is not.
const FEW: u64 = 8;
/// If more than one in these many events cannot be read, none is trusted.
const UNREAD_SHARE: u64 = 10;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    Event(Head<'a>),
    /// The recorder lost this number of events here.
    Lost(u64),
    /// This number of events was overwritten before the recording's first one.
    LostBefore(u64),
    /// What is known to stand between events: a comment, a header, a line of a call chain.
    Nothing,
    Unknown,
}

/// The kind of the line, but for babeltrace's.
pub(crate) fn content(line: &str) -> Content<'_> {
    if let Some(head) = Head::read(line) {
        return match head.fields.strip_prefix("PERF_RECORD_") {
            None => Content::Event(head),
            Some(record) => match record.split_once(" lost ") {
                Some((kind, count)) if kind.starts_with("LOST") => {
                    Content::Lost(count.trim().parse().unwrap_or(1))
                }
                _ => Content::Nothing,
            },
        };
    }
    if let Some(count) = overwritten(line) {
        Content::LostBefore(count)
    } else if let Some(count) = lost(line) {
        Content::Lost(count)
    } else if is_between(line) {
        Content::Nothing
    } else {
        Content::Unknown
    }
}

/// `# entries-in-buffer/entries-written: 16128/20000   #P:2`: how many were overwritten.
fn overwritten(line: &str) -> Option<u64> {
    let (_, counts) = line.split_once("entries-in-buffer/entries-written:")?;
    let (kept, written) = counts.split_whitespace().next()?.split_once('/')?;
    let (kept, written): (u64, u64) = (kept.parse().ok()?, written.parse().ok()?);
    (written > kept).then(|| written - kept)
}

/// How many events were lost by the kernel's `CPU:1 [LOST 123 EVENTS]`, trace-cmd's
/// `CPU:1 [123 EVENTS DROPPED]`, babeltrace's `Tracer discarded 41 events between ...` or perf's
/// `Processed 99 events and lost 3 chunks!`; 1 if it does not tell.
fn lost(line: &str) -> Option<u64> {
    let line = line.trim_start();
    let said = match line
        .strip_prefix("CPU:")
        .and_then(|line| line.split_once(" ["))
    {
        Some((_, said)) if said.contains("LOST") || said.contains("DROPPED") => said,
        _ => {
            [
                "racer discarded ",
                "racer may have discarded ",
                " events and lost ",
            ]
            .iter()
            .find_map(|begin| line.split_once(begin))?
            .1
        }
    };
    let number = said
        .split([' ', ']'])
        .take(2)
        .find_map(|word| word.parse().ok());
    Some(number.unwrap_or(1))
}

/// Comments, call chains of ftrace and perf, calls of a function graph, and what trace-cmd and
/// atrace write in front.
fn is_between(line: &str) -> bool {
    let text = line.trim();
    let first = text.split_ascii_whitespace().next().unwrap_or("");
    let is_call = line.starts_with([' ', '\t'])
        && first.bytes().all(|byte| byte.is_ascii_hexdigit())
        && first.len() < text.len();
    let begins = |begin| text.starts_with(begin);
    is_call
        || text.is_empty()
        || "# => -- cpus= CPU version capturing TRACE:"
            .split(' ')
            .any(begins)
        || text.contains(") ") && text.contains(" => ")
        || text.contains('|') && text.ends_with([';', '{', '}', '/', '|']) && !mentions_event(text)
}

fn mentions_event(line: &str) -> bool {
    let names = ["sched_switch", "sched_waking", "sched_wakeup"];
    names.iter().any(|name| line.contains(name))
}

fn advice(line: &str) -> &'static str {
    let text = line.trim();
    let begin = text.split_ascii_whitespace().next().unwrap_or("");
    let is_count = |word: &str| {
        let word = word
            .rsplit(']')
            .next()
            .and_then(|word| word.strip_suffix(':'));
        word.is_some_and(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()))
    };
    if text.contains('\u{1b}') {
        "it is colored: write the text again without --color"
    } else if ["us : ", "us+: ", "us!: "]
        .iter()
        .any(|time| text.contains(time))
    {
        "its time is relative, as in the kernel's own dump: record again without the option \
         'latency-format'"
    } else if begin.starts_with('[') && !begin.contains([':', '.']) {
        "its time is a count of cycles: write the text again without babeltrace's --clock-cycles"
    } else if text.starts_with(['[', '{']) || text.starts_with("timestamp = ") {
        "write the text again with 'babeltrace2 TRACE', without options on fields or names"
    } else if text.contains("/* ") {
        "the tracer function_graph does not write the time: record with the tracer 'nop', or with \
         the option 'funcgraph-abstime'"
    } else if text.split_ascii_whitespace().any(is_count) {
        "its time is a count: record again with the clock 'mono'"
    } else {
        "it needs a thread's number, a time in seconds, and the event with its fields: record \
         again with the clock 'mono', or write the text again with 'perf script' or \
         'trace-cmd report', without options on fields"
    }
}

#[derive(Default)]
struct Seen {
    count: u64,
    /// The first one's line, and what it holds or what is wrong there.
    first: Option<(u64, String)>,
}

impl Seen {
    fn add(&mut self, line: u64, said: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(|| (line, said()));
    }
}

#[derive(Default)]
struct Reader {
    collected: Collected,
    format: Option<Format>,
    clock: lttng::DayClock,
    unread: Seen,
    passed: Seen,
    others: Seen,
    known: bool,
    /// Scheduling events.
    read: u64,
}

impl Reader {
    fn take(&mut self, number: u64, line: &str) {
        let (format, event) = match lttng::event(line, &mut self.clock, &mut self.collected) {
            Some(event) => (Format::Lttng, event),
            None => match content(line) {
                Content::Event(head) => {
                    let format = if head.is_perfs {
                        Format::PerfScript
                    } else {
                        Format::Ftrace
                    };
                    if let Some(pid) = head.pid {
                        self.collected.process(head.tid, pid);
                    }
                    let waker = if head.by_thread { head.tid } else { 0 };
                    let what = switch_event::parse(head.name, head.fields, waker);
                    let raw = |what| Raw {
                        at: head.at,
                        cpu: head.cpu,
                        current: head.tid,
                        what,
                    };
                    let broken =
                        || format!("the fields of {} are not those of the kernel", head.name);
                    (format, what.map(raw).ok_or_else(broken))
                }
                Content::Lost(count) => return self.collected.lost(count),
                Content::LostBefore(count) => return self.collected.lost_before(count),
                Content::Nothing => return self.known |= !line.trim().is_empty(),
                Content::Unknown if mentions_event(line) => {
                    (Format::Ftrace, Err("this event cannot be read".to_owned()))
                }
                Content::Unknown => return self.passed.add(number, || excerpt(line)),
            },
        };
        match event {
            Ok(raw) => {
                self.format.get_or_insert(format);
                if raw.what == SchedEvent::Other {
                    self.others.add(number, || excerpt(line));
                } else {
                    self.read += 1;
                }
                self.collected.event(raw);
            }
            Err(problem) => {
                let said = || format!("{problem}: '{}'; {}", excerpt(line), advice(line));
                self.unread.add(number, said);
                self.collected.lost(1);
            }
        }
    }

    fn finish(mut self, lines: &Lines<'_>, page: bool) -> Result<Recording, ReadError> {
        let no = |reason: String| Err(lines.refused(reason));
        if let Some((line, problem)) = self.unread.first {
            let (unread, all) = (self.unread.count, self.unread.count + self.read);
            if unread.saturating_mul(UNREAD_SHARE) > all {
                let problem = format!("{problem} ({unread} of {all} events are such)");
                return Err(lines.broken(line, problem));
            }
            self.collected.warnings.push(format!(
                "{unread} events could not be read and count as lost, the first in line {line}: {problem}"
            ));
        }
        let nothing = !page && self.others.count == 0 && self.passed.count == 0;
        self.known |= self.others.count > 0;
        if self.read == 0 && self.known && (nothing || self.collected.cut_off) {
            self.collected
                .warnings
                .push("there is no event before its end".to_owned());
        } else if self.read == 0 {
            const RECORD: &str = "record the kernel's events sched_switch and sched_waking";
            return match (self.others.first, self.passed.first) {
                _ if page => no("it is a page of HTML without ftrace's text in a \
                                 <script class=\"trace-data\">, as systrace writes it"
                    .to_owned()),
                (Some((line, first)), _) => no(format!(
                    "none of its events is one of scheduling, the first is in line {line} '{first}'; {RECORD}"
                )),
                (None, first) if !self.known => no(format!(
                    "it begins with '{}', which is neither ftrace text, nor perf script text, nor babeltrace2's \
                     text of a kernel trace, nor a Perfetto trace, nor a time in nanoseconds (CSV), nor onbeat's own \
                     recording",
                    first.map(|(_, first)| first).unwrap_or_default()
                )),
                (None, _) => no(format!("it holds no event; {RECORD}")),
            };
        }
        if self.collected.runs_backwards() {
            return no("its times go back again and again, as differences of times do: write the text again \
                       with times (perf script without --deltatime)".to_owned());
        }
        if let Some((line, first)) = self
            .passed
            .first
            .filter(|_| self.passed.count > FEW && !page)
        {
            self.collected.warnings.push(format!(
                "{} lines that are no events were passed over, the first is line {line}: '{first}'",
                self.passed.count
            ));
        }
        let format = if page {
            Format::Systrace
        } else {
            self.format.unwrap_or(Format::Ftrace)
        };
        Ok(self.collected.into_recording(format))
    }
}

pub(super) fn read(lines: &mut Lines<'_>) -> Result<Recording, ReadError> {
    let mut reader = Reader::default();
    while let Some(line) = lines.next()? {
        if !line.ended {
            reader.collected.cut_off(&format!("line {}", line.number));
            break;
        }
        reader.take(line.number, &line.text);
    }
    reader.finish(lines, false)
}

/// Reads the recording in a page of systrace: ftrace's text between
/// `<script class="trace-data" ...>` and `</script>`, beside other data and the viewer itself.
pub(super) fn read_page(lines: &mut Lines<'_>) -> Result<Recording, ReadError> {
    const BEGINS: [&str; 2] = ["class=\"trace-data\"", "class=\"viewer-data\""];
    let mut reader = Reader::default();
    let mut begun = None;
    while let Some(line) = lines.next_piece()? {
        let mut text: &str = &line.text;
        if begun.is_none() {
            let data = BEGINS
                .iter()
                .find_map(|begin| text.split_once(begin)?.1.split_once('>'));
            let Some((_, data)) = data else { continue };
            text = data;
        }
        let end = text.split_once("</script>").map(|(data, _)| data);
        if line.ended || end.is_some() {
            reader.take(line.number, end.unwrap_or(text));
        }
        begun = end.is_none().then_some(line.number);
    }
    if let Some(number) = begun {
        reader.collected.cut_off(&format!("line {number}"));
    }
    reader.finish(lines, true)
}

/// Reads the recording in Chrome's JSON: ftrace's text in a string of its own.
pub(super) fn read_json(lines: &mut Lines<'_>) -> Result<Recording, ReadError> {
    #[derive(serde::Deserialize)]
    struct Trace {
        #[serde(rename = "systemTraceEvents")]
        text: String,
    }
    let path = lines.path().to_owned();
    match serde_json::from_reader::<_, Trace>(&mut *lines) {
        Ok(trace) => read(&mut Lines::new(trace.text.as_bytes(), &path)?),
        Err(error) => Err(lines.refused(format!(
            "it is JSON without ftrace's text in 'systemTraceEvents' ({error}): take the trace that it was \
             made of, or 'perf script' of perf's data"
        ))),
    }
}

pub(super) fn excerpt(line: &str) -> String {
    let mut chars = line.trim().chars();
    let mut text: String = chars
        .by_ref()
        .take(EXCERPT)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if chars.next().is_some() {
        text.push_str("...");
    }
    text
}
