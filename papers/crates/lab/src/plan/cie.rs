//! Planned reservations in the template of Autoware's callback-isolated executors
//! (`cie_thread_configurator`): one entry for each callback group, and for each thread without one.
//!
//! The file is rewritten line by line, as its `prerun_node` lays it out, so that everything else in
//! it stays. An entry's thread is found, in this order:
//!
//! 1. by a comment that has a line of `prerun_node`'s log, `tid=NUMBER | ID`;
//! 2. for an entry of `non_ros_threads`, by the thread's name, which is its id;
//! 3. by the period of a timer, which the id of a callback group has in nanoseconds
//!    (`@Timer(10000000)`), if one entry and one thread alone have it.

use std::collections::{BTreeMap, BTreeSet};

use super::PlanLine;

/// The parts of an entry that a plan replaces.
const REPLACED: [&str; 5] = ["policy", "priority", "runtime", "deadline", "period"];
/// A thread's period is a timer's if it differs by no more than this share: clocks and the analysis
/// differ by less.
const TOLERANCE: f64 = 0.01;

pub(super) struct Filled {
    pub(super) text: String,
    /// One line for each entry that stays as it was, or is to be looked at.
    pub(super) notes: Vec<String>,
}

/// An entry of the template.
struct TemplateEntry {
    id: String,
    /// The first of its lines, and the first one behind it.
    lines: (usize, usize),
    /// Whether it is a thread without a callback group: its id is the thread's name.
    is_thread: bool,
}

pub(super) fn fill(template: &str, threads: &[PlanLine]) -> Filled {
    let lines: Vec<&str> = template.lines().collect();
    let entries = entries(&lines);
    let mut notes = Vec::new();
    let found = assign(&entries, &lines, threads, &mut notes);
    let mut text = String::new();
    let mut next = 0;
    for (entry, thread) in entries.iter().zip(found) {
        let (from, to) = entry.lines;
        let Some(planned) = thread else {
            continue;
        };
        push(&mut text, lines.iter().take(from).skip(next));
        rewrite(&mut text, lines.iter().take(to).skip(from), planned);
        next = to;
    }
    push(&mut text, lines.iter().skip(next));
    Filled { text, notes }
}

fn push<'a>(text: &mut String, lines: impl Iterator<Item = &'a &'a str>) {
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
}

/// How far a line is indented, and what it says.
fn indented(line: &str) -> (usize, &str) {
    let text = line.trim_start();
    (line.len() - text.len(), text.trim_end())
}

/// `key: value`, also behind the dash of a list.
fn key_value(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix("- ").unwrap_or(text);
    let (key, value) = text.split_once(':')?;
    Some((key.trim(), value.trim()))
}

fn entries(lines: &[&str]) -> Vec<TemplateEntry> {
    let mut entries: Vec<TemplateEntry> = Vec::new();
    let mut list = None;
    let mut dash = usize::MAX;
    for (index, line) in lines.iter().enumerate() {
        let (indent, text) = indented(line);
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let is_item = text.starts_with("- ") || text == "-";
        if !is_item && indent == 0 {
            list = match key_value(text) {
                Some(("callback_groups", "")) => Some(false),
                Some(("non_ros_threads", "")) => Some(true),
                _ => None,
            };
            dash = usize::MAX;
            continue;
        }
        let Some(is_thread) = list else {
            continue;
        };
        let begins = is_item && indent <= dash;
        if begins {
            dash = indent;
            entries.push(TemplateEntry {
                id: String::new(),
                lines: (index, index + 1),
                is_thread,
            });
        }
        if let Some(entry) = entries.last_mut() {
            entry.lines.1 = index + 1;
            // Not a key of what the entry has below it.
            let is_own = begins || indent == dash.saturating_add(2);
            if let Some(("id", value)) = key_value(text).filter(|_| is_own) {
                entry.id = value.trim_matches(['"', '\'']).to_owned();
            }
        }
    }
    entries
}

/// The plan for each entry, if there is one.
fn assign<'a>(
    entries: &[TemplateEntry],
    lines: &[&str],
    threads: &'a [PlanLine],
    notes: &mut Vec<String>,
) -> Vec<Option<&'a PlanLine>> {
    let logged = logged(lines);
    let by_tid = |tid: u32| threads.iter().find(|line| line.tid == tid);
    let named = |entry: &TemplateEntry| match logged.get(&*entry.id) {
        Some(&tid) => by_tid(tid),
        None => {
            let mut own = threads.iter().filter(|line| line.comm == entry.id);
            own.next()
                .filter(|_| entry.is_thread && own.next().is_none())
        }
    };
    let mut found: Vec<Option<&PlanLine>> = entries.iter().map(named).collect();
    let taken: BTreeSet<u32> = found.iter().flatten().map(|line| line.tid).collect();
    let is_free = |entry: &TemplateEntry, found: Option<&PlanLine>| {
        found.is_none() && !logged.contains_key(&*entry.id)
    };
    let timers: Vec<Option<u64>> = entries
        .iter()
        .zip(&found)
        .map(|(entry, found)| timer(&entry.id).filter(|_| is_free(entry, *found)))
        .collect();
    for (place, own) in found.iter_mut().zip(&timers) {
        let Some(period) = *own else {
            continue;
        };
        let alike = timers
            .iter()
            .flatten()
            .filter(|other| is_near(**other, period));
        let mut free = threads
            .iter()
            .filter(|line| !taken.contains(&line.tid) && is_near(line.period_ns.as_ns(), period));
        *place = free
            .next()
            .filter(|_| free.next().is_none() && alike.count() == 1);
    }
    let checked = entries.iter().zip(found).map(|(entry, line)| {
        let (planned, note) = check(entry, line, logged.get(&*entry.id).copied());
        notes.extend(note);
        planned
    });
    checked.collect()
}

/// The plan, unless the file cannot hold it, and what there is to say.
fn check<'a>(
    entry: &TemplateEntry,
    line: Option<&'a PlanLine>,
    tid: Option<u32>,
) -> (Option<&'a PlanLine>, Option<String>) {
    let id = &entry.id;
    let Some(line) = line else {
        let why = match tid {
            Some(tid) => format!("nothing is planned for its thread {tid}"),
            None => "its thread is not known: add the lines of prerun_node's log with 'tid=' to the template, as \
                     comments"
                .to_owned(),
        };
        return (None, Some(format!("{id} stays as it is: {why}")));
    };
    // thread_configurator_node reads 32 bits.
    if u32::try_from(line.period_ns.as_ns()).is_err() {
        let why = format!("its period of {} does not fit the file", line.period_ns);
        return (None, Some(format!("{id} stays as it is: {why}")));
    }
    let differs = timer(id).filter(|&timer| !is_near(line.period_ns.as_ns(), timer));
    let note = differs.map(|timer| {
        let found = line.period_ns;
        let timer = onbeat_model::Span::from_ns(timer);
        format!(
            "{id}: its timer has {timer}, but thread {} showed {found}: check it",
            line.tid
        )
    });
    (Some(line), note)
}

/// The threads of the ids in comments.
fn logged<'a>(lines: &[&'a str]) -> BTreeMap<&'a str, u32> {
    let read = |line: &&'a str| {
        let comment = line.trim_start().strip_prefix('#')?;
        let (tid, id) = comment.split_once("tid=")?.1.split_once(" | ")?;
        Some((id.trim(), tid.parse().ok()?))
    };
    lines.iter().filter_map(read).collect()
}

/// The period of a callback group's timer, in nanoseconds, if it has exactly one.
fn timer(id: &str) -> Option<u64> {
    let mut timers = id.split("@Timer(").skip(1);
    let period = timers.next()?.split(')').next()?.parse().ok()?;
    timers.next().is_none().then_some(period)
}

fn is_near(period: u64, timer: u64) -> bool {
    (period as f64 - timer as f64).abs() <= TOLERANCE * timer as f64
}

/// The entry's lines with the plan in place of its policy.
fn rewrite<'a>(text: &mut String, lines: impl Iterator<Item = &'a &'a str>, planned: &PlanLine) {
    let reservation = &planned.reservation;
    let mut is_filled = false;
    let fill = |text: &mut String, dash: &str, indent: usize| {
        let keys = [
            ("policy", "SCHED_DEADLINE".to_owned()),
            ("runtime", reservation.runtime().as_ns().to_string()),
            ("deadline", reservation.deadline().as_ns().to_string()),
            ("period", reservation.period().as_ns().to_string()),
        ];
        for (index, (key, value)) in keys.iter().enumerate() {
            let before = if index == 0 { dash } else { "" };
            let indent = if before.is_empty() {
                indent
            } else {
                indent - dash.len()
            };
            text.push_str(&" ".repeat(indent));
            text.push_str(&format!("{before}{key}: {value}\n"));
        }
    };
    let mut keys = None;
    for line in lines {
        let (indent, said) = indented(line);
        let dash = if said.starts_with("- ") { "- " } else { "" };
        let keys = *keys.get_or_insert(indent + 2);
        let key = key_value(said).map(|(key, _)| key);
        let is_own = indent + dash.len() == keys;
        if !is_own || !key.is_some_and(|key| REPLACED.contains(&key)) {
            text.push_str(line);
            text.push('\n');
        } else if !is_filled {
            fill(text, dash, keys);
            is_filled = true;
        }
    }
    if let Some(keys) = keys.filter(|_| !is_filled) {
        fill(text, "", keys);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::line;
    use super::*;

    const TEMPLATE: &str = "hardware_info:
  policy: none of ours
callback_groups:
  - id: /a@Timer(10000000)
    affinity: ~
    policy: SCHED_OTHER
    priority: 0

  - id: \"/b@Subscription(/in)@Waitable\"
    affinity:
      - 0
    policy: SCHED_OTHER
    priority: 0

  - id: /c@Timer(30000000)
    affinity: ~
    policy: SCHED_OTHER
    priority: 0
non_ros_threads:
  - policy: SCHED_FIFO
    id: camera
    priority: 5
# [INFO] [prerun_node]: Received CallbackGroupInfo: tid=12 | /b@Subscription(/in)@Waitable
";

    #[test]
    fn entries_are_filled_by_log_by_name_and_by_timer_and_the_rest_stays() {
        let threads = [
            line(11, "node", 2, 10),
            line(12, "node", 5, 100),
            line(13, "camera", 3, 33),
        ];
        let filled = fill(TEMPLATE, &threads);
        let expected = TEMPLATE
            .replacen(
                "    policy: SCHED_OTHER\n    priority: 0\n",
                "    policy: SCHED_DEADLINE\n    runtime: 2000000\n    deadline: 10000000\n    period: 10000000\n",
                1,
            )
            .replacen(
                "    policy: SCHED_OTHER\n    priority: 0\n",
                "    policy: SCHED_DEADLINE\n    runtime: 5000000\n    deadline: 100000000\n    period: 100000000\n",
                1,
            )
            .replace(
                "  - policy: SCHED_FIFO\n    id: camera\n    priority: 5\n",
                "  - policy: SCHED_DEADLINE\n    runtime: 3000000\n    deadline: 33000000\n    period: 33000000\n    \
                 id: camera\n",
            );
        assert_eq!(filled.text, expected);
        let [note] = &filled.notes[..] else {
            panic!("{:?}", filled.notes);
        };
        assert!(
            note.starts_with("/c@Timer(30000000) stays as it is: its thread is not known"),
            "{note}"
        );
    }

    #[test]
    fn a_timer_that_its_thread_does_not_keep_and_a_period_that_does_not_fit_are_told() {
        let template =
            "callback_groups:\n  - id: /a@Timer(10000000)\n# tid=1 | /a@Timer(10000000)\n";
        let told = |period| fill(template, &[line(1, "x", 1, period)]).notes;
        assert!(told(20)[0].contains("its timer has 10 ms, but thread 1 showed 20 ms"));
        assert!(told(5000)[0].contains("does not fit the file"));
        assert!(told(10).is_empty());
    }

    proptest! {
        #[test]
        fn no_template_makes_it_panic_and_without_plans_nothing_changes(
            lines in proptest::collection::vec("[ ]{0,5}(- )?(id|policy|callback_groups|x)?:? ?[a@(T0-9\"'#|]{0,9}", 0..20)
        ) {
            let mut text = lines.join("\n");
            text.push('\n');
            let text = format!("callback_groups:\n{text}");
            prop_assert_eq!(fill(&text, &[]).text, text.clone());
            fill(&text, &[line(0, "a", 1, 10)]);
        }
    }
}
