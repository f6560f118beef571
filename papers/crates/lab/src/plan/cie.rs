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

use std::collections::BTreeMap;

use onbeat_model::Span;

use super::PlanLine;

/// The parts of an entry that a plan replaces.
const REPLACED: [&str; 5] = ["policy", "priority", "runtime", "deadline", "period"];
/// A thread's period is a timer's if it differs by no more than this share: clocks and the analysis
/// differ by less.
const TOLERANCE: f64 = 0.01;

/// An entry of the template.
struct TemplateEntry {
    id: String,
    /// The first of its lines, and the first one behind it.
    lines: (usize, usize),
    /// Whether it is a thread without a callback group: its id is the thread's name.
    is_thread: bool,
}

/// The file, and a note for each entry that stays as it was, or is to be looked at.
pub(super) fn fill(template: &str, threads: &[PlanLine]) -> (String, Vec<String>) {
    let lines: Vec<&str> = template.lines().collect();
    let (logged, entries) = (logged(&lines), entries(&lines));
    let (mut text, mut notes, mut next) = (String::new(), Vec::new(), 0);
    for (entry, planned) in entries.iter().zip(assign(&entries, &logged, threads)) {
        let id = &entry.id;
        match check(entry, planned, logged.get(&**id).copied()) {
            Err(why) => notes.push(format!("{id} stays as it is: {why}")),
            Ok((planned, note)) => {
                notes.extend(note.map(|note| format!("{id}: {note}")));
                let (from, to) = entry.lines;
                lines[next..from]
                    .iter()
                    .for_each(|line| push(&mut text, line));
                rewrite(&mut text, &lines[from..to], planned);
                next = to;
            }
        }
    }
    lines[next..].iter().for_each(|line| push(&mut text, line));
    (text, notes)
}

fn push(text: &mut String, line: &str) {
    *text += line;
    text.push('\n');
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
    // Whether the list is of threads, and how far its dashes are indented.
    let mut list: Option<(bool, usize)> = None;
    for (index, line) in lines.iter().enumerate() {
        let (indent, text) = indented(line);
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let is_item = text.starts_with("- ") || text == "-";
        if !is_item && indent == 0 {
            list = match key_value(text) {
                Some(("callback_groups", "")) => Some((false, usize::MAX)),
                Some(("non_ros_threads", "")) => Some((true, usize::MAX)),
                _ => None,
            };
            continue;
        }
        let Some((is_thread, dash)) = &mut list else {
            continue;
        };
        let begins = is_item && indent <= *dash;
        if begins {
            *dash = indent;
            entries.push(TemplateEntry {
                id: String::new(),
                lines: (index, index),
                is_thread: *is_thread,
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

fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    all.next().filter(|_| all.next().is_none())
}

/// The plan for each entry, if there is one.
fn assign<'a>(
    entries: &[TemplateEntry],
    logged: &BTreeMap<&str, u32>,
    threads: &'a [PlanLine],
) -> Vec<Option<&'a PlanLine>> {
    let named = |entry: &TemplateEntry| match logged.get(&*entry.id) {
        Some(tid) => threads.iter().find(|line| line.tid == *tid),
        None => only(
            threads
                .iter()
                .filter(|line| entry.is_thread && line.comm == entry.id),
        ),
    };
    let named: Vec<Option<&PlanLine>> = entries.iter().map(named).collect();
    let is_taken = |line: &PlanLine| named.iter().flatten().any(|own| own.tid == line.tid);
    let unnamed = |(entry, named): (&TemplateEntry, &Option<&PlanLine>)| {
        timer(&entry.id).filter(|_| named.is_none() && !logged.contains_key(&*entry.id))
    };
    let timers: Vec<Option<u64>> = entries.iter().zip(&named).map(unnamed).collect();
    let of_timer = |timer: u64| {
        only(
            timers
                .iter()
                .flatten()
                .filter(|other| is_near(**other, timer)),
        )?;
        let free = threads.iter().filter(|line| !is_taken(line));
        only(free.filter(|line| is_near(line.period_ns.as_ns(), timer)))
    };
    let found = named.iter().zip(&timers);
    found
        .map(|(named, timer)| named.or_else(|| of_timer((*timer)?)))
        .collect()
}

/// The plan and what there is to say of it, or why the entry has none.
fn check<'a>(
    entry: &TemplateEntry,
    planned: Option<&'a PlanLine>,
    tid: Option<u32>,
) -> Result<(&'a PlanLine, Option<String>), String> {
    let planned = planned.ok_or_else(|| match tid {
        Some(tid) => format!("nothing is planned for its thread {tid}"),
        None => "its thread is not known: add the lines of prerun_node's log with 'tid=' to the template, as comments"
            .to_owned(),
    })?;
    let period = planned.period_ns;
    // thread_configurator_node reads 32 bits.
    if u32::try_from(period.as_ns()).is_err() {
        return Err(format!("its period of {period} does not fit the file"));
    }
    let differs = timer(&entry.id).filter(|&timer| !is_near(period.as_ns(), timer));
    let note = differs.map(|timer| {
        let (timer, tid) = (Span::from_ns(timer), planned.tid);
        format!("its timer has {timer}, but thread {tid} showed {period}: check it")
    });
    Ok((planned, note))
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
    only(id.split("@Timer(").skip(1))?
        .split(')')
        .next()?
        .parse()
        .ok()
}

fn is_near(period: u64, timer: u64) -> bool {
    (period as f64 - timer as f64).abs() <= TOLERANCE * timer as f64
}

/// The entry's lines with the plan in place of its policy.
fn rewrite(text: &mut String, lines: &[&str], planned: &PlanLine) {
    let keys = lines.first().map_or(0, |line| indented(line).0 + 2);
    let filled = |before: &str| {
        let [runtime, deadline, period] = [
            planned.reservation.runtime(),
            planned.reservation.deadline(),
            planned.reservation.period(),
        ]
        .map(Span::as_ns);
        let indent = " ".repeat(keys);
        format!(
            "{before}policy: SCHED_DEADLINE\n{indent}runtime: {runtime}\n{indent}deadline: {deadline}\n\
             {indent}period: {period}\n"
        )
    };
    let mut is_filled = false;
    for line in lines {
        let (indent, said) = indented(line);
        let begin = indent + if said.starts_with("- ") { 2 } else { 0 };
        let key = key_value(said).map_or("", |(key, _)| key);
        if begin != keys || !REPLACED.contains(&key) {
            push(text, line);
        } else if !std::mem::replace(&mut is_filled, true) {
            *text += &filled(&line[..begin]);
        }
    }
    if !is_filled {
        *text += &filled(&" ".repeat(keys));
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
        let (text, notes) = fill(TEMPLATE, &threads);
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
        assert_eq!(text, expected);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("/c@Timer(30000000) stays as it is: its thread is not known"));
    }

    #[test]
    fn a_timer_that_its_thread_does_not_keep_and_a_period_that_does_not_fit_are_told() {
        let template =
            "callback_groups:\n  - id: /a@Timer(10000000)\n# tid=1 | /a@Timer(10000000)\n";
        let told = |period| fill(template, &[line(1, "x", 1, period)]).1;
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
            prop_assert_eq!(fill(&text, &[]).0, text.clone());
            fill(&text, &[line(0, "a", 1, 10)]);
        }
    }
}
