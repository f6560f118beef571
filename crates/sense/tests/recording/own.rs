use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use onbeat_model::{Burst, Event, Instant, Name, Span};
use onbeat_sense::recording::{Facts, Writer};
use onbeat_sense::recording::{Format, read};
use serde_json::{Value, json};

use crate::{check, is_refused, read_bytes};

/// An event of each kind but a burst.
const LINES: &str = r#"
{"event":"tracked","at_ns":1000,"tid":7,"started_ticks":4711,"pid":5,"comm":"player"}
{"event":"exhausted","at_ns":3000000,"tid":7,"started_ticks":4711}
{"event":"wakeup","at_ns":3000001,"tid":7,"started_ticks":4711,"waker":9}
{"event":"yielded","at_ns":3000001,"tid":7,"started_ticks":4711}
{"event":"waited","at_ns":3000001,"tid":7,"started_ticks":4711,"waited_ns":2000000,"behind":9}
{"event":"marked","at_ns":3000001,"tid":7,"started_ticks":4711,"woke_ns":2999000,"executed_ns":77,"said":"real_time_started","period_ns":40000000,"permille":950}
{"event":"suppressed","at_ns":3000001,"tid":7,"started_ticks":4711,"count":5}
{"event":"lost","at_ns":3000002,"count":17}
{"event":"renamed","at_ns":3000003,"tid":7,"started_ticks":4711,"pid":5,"comm":"later"}
{"event":"exited","at_ns":3000004,"tid":7,"started_ticks":4711}"#;

fn events() -> Vec<Event> {
    let lines = LINES.trim_start().lines();
    let mut events: Vec<Event> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let at = Instant::from_ns;
    let task = events[0].task().unwrap();
    let bursts = (1..200).map(|n| {
        Event::Burst(Burst {
            first_ran: at(n * 10_000 + 20),
            blocked: at(n * 10_000 + 3_000),
            preempted: 1,
            waker: 3,
            exhausted: n == 100,
            expiry: (n % 2 == 0).then(|| at(n * 10_000 - 70)),
            ..Burst::alone(task, at(n * 10_000), Span::from_ns(2_900))
        })
    });
    events.splice(1..1, bursts);
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
fn what_was_flushed_survives_a_writer_that_never_ends_and_one_that_is_dropped_writes_all() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["r", "r.gz"] {
        let path = folder.path().join(name);
        let mut writer = Writer::create(&path, &Facts::gather(&[])).unwrap();
        for event in events() {
            writer.write(&event).unwrap();
        }
        writer.flush().unwrap();
        assert_eq!(read(&path).unwrap().events, events(), "{name}");
        let last = Event::Lost {
            at: Instant::from_ns(4_000_000),
            count: 1,
        };
        writer.write(&last).unwrap();
        drop(writer);
        assert_eq!(read(&path).unwrap().events.last(), Some(&last), "{name}");
    }
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

/// The names in the cells of the tables in the section of `docs/recording.md` with this heading.
fn tables(heading: &str) -> Vec<Vec<Vec<String>>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recording.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once(&format!("## {heading}\n")).unwrap();
    let section = section.split("\n### ").next().unwrap_or_default();
    let names = |cell: &str| {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.split('|').skip(1).map(names).collect())
        .collect()
}

#[test]
fn the_lines_of_a_recording_have_the_members_that_its_page_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    written(&path, &Facts::gather(&["mplayer".into()]));
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| {
        let object: BTreeMap<String, Value> = serde_json::from_str(line).unwrap();
        object
    });
    let first = lines.next().unwrap();
    assert_eq!(
        (&first["format"], &first["version"]),
        (&json!("onbeat-recording"), &json!(1))
    );
    let of_first = tables("The first line")
        .into_iter()
        .flat_map(|row| row[0].clone());
    assert_eq!(
        first.into_keys().collect::<BTreeSet<_>>(),
        of_first.collect()
    );
    let mut seen = BTreeMap::<String, BTreeSet<String>>::new();
    for event in lines {
        let name = event["event"].as_str().unwrap().to_owned();
        seen.entry(name).or_default().extend(event.into_keys());
    }
    let events = tables("Events")
        .into_iter()
        .filter(|row| !row[1].is_empty());
    let events = events.map(|row| {
        let members = row[1].iter().cloned().chain(["event".to_owned()]);
        (row[0][0].clone(), members.collect())
    });
    assert_eq!(seen, events.collect());
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
        is_refused(with_line(line), "made:2: ", &[said, "remove the line"]);
    }
}

#[test]
fn a_recording_of_a_later_version_is_refused_and_says_whose_it_is() {
    let facts = Facts {
        version: 99,
        onbeat: "7.1".into(),
        ..Facts::gather(&[])
    };
    let text = serde_json::to_string(&facts).unwrap();
    is_refused(text, "", &["version 99", "7.1"]);
}
