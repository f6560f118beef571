//! onbeat's own recording, written and read back.

use std::collections::BTreeSet;
use std::path::Path;

use onbeat_model::{Burst, Event, Instant, Mark, Name, Said, Span, Task, TaskId};
use onbeat_sense::recording::{Facts, Writer};
use onbeat_sense::recording::{Format, read};

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

/// The first cells of the table rows in the section of `docs/formats.md` with this heading.
fn documented(heading: &str) -> BTreeSet<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once(&format!("## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap_or_default();
    (section.lines())
        .filter_map(|line| line.strip_prefix("| `")?.split(" |").next())
        .flat_map(|cell| cell.split(", "))
        .map(|cell| cell.trim_matches('`').to_owned())
        .collect()
}

#[test]
fn the_first_line_and_every_event_have_the_fields_that_are_documented() {
    let fields = |value: serde_json::Value| {
        let object = value.as_object().unwrap().clone();
        object.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    let facts = serde_json::to_value(Facts::gather(&[])).unwrap();
    let mut written: BTreeSet<String> = fields(facts).into_iter().collect();
    for event in events() {
        let value = serde_json::to_value(event).unwrap();
        written.insert(value["event"].as_str().unwrap().to_owned());
        written.extend(fields(value));
    }
    assert_eq!(documented("onbeat's own recording"), written);
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
