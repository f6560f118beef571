//! onbeat's own recording, written and read back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use onbeat_model::{Burst, Event, Instant, Mark, Name, Said, Span, Task, TaskId};
use onbeat_sense::recording::{Facts, Writer};
use onbeat_sense::recording::{Format, read};
use serde_json::{Value, json};

use crate::{check, read_bytes};

fn task() -> Task {
    Task {
        id: TaskId {
            tid: 7,
            started_ticks: 4711,
        },
        pid: 5,
        comm: Name::from("player"),
    }
}

fn events() -> Vec<Event> {
    let at = Instant::from_ns;
    let id = task().id;
    let mut events = vec![Event::Tracked {
        at: at(1_000),
        task: task(),
    }];
    events.extend((1..200).map(|n| {
        Event::Burst(Burst {
            task: id,
            woke: at(n * 10_000),
            first_ran: at(n * 10_000 + 20),
            blocked: at(n * 10_000 + 3_000),
            executed: Span::from_ns(2_900),
            preempted: 1,
            waker: 3,
            exhausted: n == 100,
            expiry: (n % 2 == 0).then(|| at(n * 10_000 - 70)),
        })
    }));
    events.extend([
        Event::Exhausted {
            at: at(3_000_000),
            task: id,
        },
        Event::Wakeup {
            at: at(3_000_001),
            task: id,
            waker: 9,
        },
        Event::Yielded {
            at: at(3_000_001),
            task: id,
        },
        Event::Waited {
            at: at(3_000_001),
            task: id,
            waited: Span::from_ms(2),
            behind: 9,
        },
        Event::Marked(Mark {
            at: at(3_000_001),
            task: id,
            woke: at(2_999_000),
            executed: Span::from_ns(77),
            said: Said::RealTimeStarted {
                period: Span::from_ms(40),
                permille: 950,
            },
        }),
        Event::Suppressed {
            at: at(3_000_001),
            task: id,
            count: 5,
        },
        Event::Lost {
            at: at(3_000_002),
            count: 17,
        },
        Event::Renamed {
            at: at(3_000_003),
            task: Task {
                comm: Name::from("later"),
                ..task()
            },
        },
        Event::Exited {
            at: at(3_000_004),
            task: id,
        },
    ]);
    events
}

fn written(path: &Path, facts: &Facts) {
    let mut writer = Writer::create(path, facts).unwrap();
    for event in events() {
        writer.write(&event).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_recording_reads_back_as_it_was_written_plain_and_compressed() {
    let folder = tempfile::tempdir().unwrap();
    let facts = Facts::gather(&["mplayer".into(), "film.mkv".into()]);
    for name in ["recording.jsonl", "recording.jsonl.gz", "no-extension"] {
        let path = folder.path().join(name);
        written(&path, &facts);
        let recording = read(&path).unwrap();
        check(&recording);
        assert_eq!(recording.format, Format::Onbeat);
        assert_eq!(recording.facts.as_ref(), Some(&facts));
        assert_eq!(recording.events, events());
        assert_eq!(recording.tasks.len(), 1);
        assert_eq!(recording.tasks[0].comm, Name::from("later"));
        assert_eq!(recording.began, Instant::from_ns(1_000));
        assert_eq!(recording.ended, Instant::from_ns(3_000_004));
        assert_eq!(recording.lost, 17);
        assert_eq!(recording.warnings.len(), 1);
    }
    let is_gzip = |name| {
        std::fs::read(folder.path().join(name))
            .unwrap()
            .starts_with(b"\x1f\x8b")
    };
    assert!(is_gzip("recording.jsonl.gz") && !is_gzip("recording.jsonl"));
}

#[test]
fn the_facts_say_on_what_the_recording_was_made() {
    let facts = Facts::gather(&["a".into()]);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(facts.kernel, release.trim());
    assert!(facts.cpus >= 1);
    assert_eq!(facts.command, ["a"]);
    let endless = vec!["x".repeat(1000); 1000];
    let kept: usize = Facts::gather(&endless)
        .command
        .iter()
        .map(String::len)
        .sum();
    assert!((1..=64 << 10).contains(&kept), "{kept}");
}

#[test]
fn a_writer_that_is_dropped_has_written_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.gz");
    let mut writer = Writer::create(&path, &Facts::gather(&[])).unwrap();
    writer.write(&events()[0]).unwrap();
    drop(writer);
    assert_eq!(read(&path).unwrap().events.len(), 1);
}

#[test]
fn what_was_flushed_survives_a_writer_that_never_ends() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["r", "r.gz"] {
        let path = folder.path().join(name);
        let mut writer = Writer::create(&path, &Facts::gather(&[])).unwrap();
        for event in events() {
            writer.write(&event).unwrap();
        }
        writer.flush().unwrap();
        std::mem::forget(writer);
        let recording = read(&path).unwrap();
        assert_eq!(recording.events, events(), "{name}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_told_by_its_name() {
    let error = Writer::create("/nonexistent/r.gz", &Facts::default())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("cannot write the recording /nonexistent/r.gz: "),
        "{error}"
    );
}

#[test]
fn a_task_whose_announcement_is_missing_is_known_by_its_bursts() {
    let facts = serde_json::to_string(&Facts::gather(&[])).unwrap();
    let burst = serde_json::to_string(&events()[1]).unwrap();
    let recording = read_bytes(format!("{facts}\n{burst}\n")).unwrap();
    let [task] = recording.tasks[..] else {
        panic!("{:?}", recording.tasks);
    };
    assert_eq!((task.id.tid, task.comm.to_text().as_str()), (7, "?"));
}

/// The rows of the tables in the section of `docs/recording.md` with this heading: the names in
/// each cell, and the cell's text.
fn tables(heading: &str) -> Vec<Vec<(Vec<String>, String)>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recording.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once(&format!("## {heading}\n")).unwrap();
    let section = section.split("\n### ").next().unwrap_or_default();
    let cell = |text: &str| {
        let names = text.split('`').skip(1).step_by(2).map(str::to_owned);
        (names.collect(), text.trim().to_owned())
    };
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.split('|').skip(1).map(cell).collect())
        .collect()
}

/// The types of members by the rows `| names | type | what |`.
fn types(heading: &str) -> BTreeMap<String, String> {
    let tables = tables(heading);
    let rows = tables.iter().filter(|row| row[1].0.is_empty());
    rows.flat_map(|row| row[0].0.iter().map(|name| (name.clone(), row[1].1.clone())))
        .collect()
}

/// Checks that the object has the members, all but optional ones, and nothing else.
fn decode(object: &Value, members: &[String], types: &BTreeMap<String, String>) {
    let object = object.as_object().unwrap();
    let unknown = object.keys().find(|name| !members.contains(name));
    assert_eq!(unknown, None, "{object:?}");
    for name in members {
        let (kind, optional) = types[name]
            .split_once(", ")
            .map_or((types[name].as_str(), false), |(kind, _)| (kind, true));
        let is_right = match (object.get(name), kind) {
            (None, _) => optional,
            (Some(value), "number") => value.is_u64(),
            (Some(value), "text") => value.is_string(),
            (Some(value), "texts") => value.as_array().unwrap().iter().all(Value::is_string),
            (Some(value), "truth") => value.is_boolean(),
            other => panic!("{name}: {other:?}"),
        };
        assert!(is_right, "{name}: {object:?}");
    }
}

#[test]
fn the_bytes_of_a_recording_are_decoded_by_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    written(&path, &Facts::gather(&["mplayer".into()]));
    let bytes = std::fs::read(path).unwrap();
    let (header, of_events) = (types("The first line"), types("Events"));
    let events: BTreeMap<_, _> = (tables("Events").into_iter())
        .filter(|row| !row[1].0.is_empty())
        .map(|row| {
            (
                row[0].0[0].clone(),
                [&["event".to_owned()], &row[1].0[..]].concat(),
            )
        })
        .collect();
    assert_eq!(bytes.last(), Some(&b'\n'));
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let first = serde_json::from_slice(lines.next().unwrap()).unwrap();
    decode(&first, &header.keys().cloned().collect::<Vec<_>>(), &header);
    assert_eq!(
        (&first["format"], &first["version"]),
        (&json!("onbeat-recording"), &json!(1))
    );
    let mut seen = BTreeSet::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let event: Value = serde_json::from_slice(line).unwrap();
        let name = event["event"].as_str().unwrap();
        decode(&event, &events[name], &of_events);
        seen.insert(name.to_owned());
    }
    assert_eq!(seen, events.into_keys().collect());
}

fn with_line(line: &str) -> String {
    let facts = serde_json::to_string(&Facts::gather(&[])).unwrap();
    format!(
        "{facts}\n{line}\n{}\n",
        serde_json::to_string(&events()[0]).unwrap()
    )
}

#[test]
fn a_broken_line_is_told_with_its_place_and_what_to_do() {
    let impossible = r#"{"event":"burst","tid":7,"started_ticks":1,"woke_ns":9,"first_ran_ns":8,"blocked_ns":10,"executed_ns":1,"preempted":0,"waker":0,"exhausted":false}"#;
    for (line, said) in [
        ("{\"event\":\"bur", "this is no event"),
        (
            "{\"event\":\"unheard\",\"at_ns\":5}",
            "unknown variant `unheard`",
        ),
        (
            "{\"event\":\"lost\",\"at_ns\":-5,\"count\":1}",
            "this is no event",
        ),
        (
            "{\"event\":\"lost\",\"at_ns\":1e30,\"count\":1}",
            "this is no event",
        ),
        (impossible, "impossible times"),
    ] {
        let error = read_bytes(with_line(line)).unwrap_err().to_string();
        assert!(error.starts_with("made:2: "), "{error}");
        assert!(
            error.contains(said) && error.contains("remove the line"),
            "{error}"
        );
    }
}

#[test]
fn a_recording_of_a_later_version_is_refused_and_says_whose_it_is() {
    let facts = Facts {
        version: 99,
        onbeat: "7.1".into(),
        ..Facts::gather(&[])
    };
    let error = read_bytes(serde_json::to_string(&facts).unwrap())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("version 99") && error.contains("7.1"),
        "{error}"
    );
}

/// Two threads on two CPUs, of which one wakes the other; a burst tells neither its CPU nor when it
/// was preempted.
#[test]
fn what_is_written_for_perfetto_is_read_back_burst_for_burst() {
    let named = |tid, comm: &str| Task {
        id: TaskId::recorded(tid),
        pid: 5,
        comm: Name::from(comm),
    };
    let (player, helper) = (named(7, "player"), named(8, "helper"));
    let at = |us| Instant::from_ns(us * 1_000);
    let burst = |task: Task, woke: u64, waker| Burst {
        first_ran: at(woke + 30),
        blocked: at(woke + 2_330),
        executed: Span::from_ns(2_300_000),
        waker,
        ..Burst::pulse(task.id, at(woke))
    };
    let tracked = [player, helper].map(|task| Event::Tracked { at: at(0), task });
    let mut expected = Vec::new();
    for beat in 1..50 {
        let begin = beat * 10_000;
        expected.push(burst(player, begin, 0));
        expected.push(Burst {
            preempted: 1,
            executed: Span::from_ns(1_000_001),
            ..burst(helper, begin + 1_000, 7)
        });
    }
    let mut bytes = Vec::new();
    let mut schedule = onbeat_timeline::Schedule::new(&mut bytes);
    let bursts = expected.iter().map(|burst| Event::Burst(*burst));
    let end = Event::Exited {
        at: at(600_000),
        task: helper.id,
    };
    for event in tracked.into_iter().chain(bursts).chain([end]) {
        schedule.hear(&event);
    }
    schedule.finish().unwrap();
    let recording = read_bytes(&bytes).unwrap();
    check(&recording);
    assert_eq!(recording.format, Format::Perfetto);
    assert_eq!(crate::bursts(&recording), expected);
    assert_eq!(recording.tasks, [player, helper]);
    assert_eq!(recording.events.last(), Some(&end));
    assert_eq!(recording.warnings, [""; 0]);

    bytes.clear();
    let mut schedule = onbeat_timeline::Schedule::new(&mut bytes);
    let lost = Event::Lost {
        at: at(1),
        count: 3,
    };
    for event in tracked.iter().chain([&lost, &Event::Burst(expected[0])]) {
        schedule.hear(event);
    }
    schedule.finish().unwrap();
    assert!(read_bytes(&bytes).unwrap().lost > 0);
}
