//! Recordings of real programs, read whole.

use std::path::PathBuf;

use onbeat_model::{Burst, Event, Name, Span};
use onbeat_sense::replay::{Format, Recording, read};

fn trace(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces")).join(name)
}

fn bursts_of(recording: &Recording, comm: &str) -> Vec<Burst> {
    let name = Name::from(comm);
    let ids: Vec<_> = (recording.tasks.iter())
        .filter(|task| task.comm == name)
        .map(|task| task.id)
        .collect();
    (recording.events.iter())
        .filter_map(|event| match event {
            Event::Burst(burst) if ids.contains(&burst.task) => Some(*burst),
            _ => None,
        })
        .collect()
}

#[test]
fn a_player_in_ftrace_has_its_bursts_and_only_its_own_tasks() {
    let recording = read(trace("apps/mplayer25.l0.txt.gz")).unwrap();
    assert_eq!(recording.format, Format::Ftrace);
    assert_eq!(recording.warnings, Vec::<String>::new());
    let comms: Vec<_> = recording.tasks.iter().map(|t| t.comm.to_text()).collect();
    assert_eq!(comms, ["mplayer"]);
    let bursts = bursts_of(&recording, "mplayer");
    for burst in &bursts {
        assert!(burst.woke <= burst.first_ran && burst.first_ran <= burst.blocked);
        assert!(burst.executed <= burst.blocked.since(burst.first_ran));
    }
    assert!(recording.events.is_sorted_by_key(Event::at));
    assert_eq!(bursts.len(), 297, "one for each wakeup in the text");
}

#[test]
fn a_csv_is_one_task_with_a_burst_of_no_length_per_row() {
    let recording = read(trace(
        "lime/periodic/p-10task_u60_mu15_ms_v10_task=00_period=13000000.csv",
    ))
    .unwrap();
    assert_eq!(recording.format, Format::Csv);
    let bursts = bursts_of(&recording, "csv");
    assert!(
        bursts
            .iter()
            .all(|b| b.woke == b.blocked && b.executed == Span::ZERO)
    );
    assert_eq!(bursts.len(), 500, "one for each row");
}
