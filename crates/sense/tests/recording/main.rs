//! Recordings read back: real ones, made ones, damaged ones.

mod bursts;
mod damage;
mod elsewhere;
mod formats;
mod forms;
mod generated;
mod own;
mod perf_data;
mod real;
mod replay;

use std::path::PathBuf;

use onbeat_model::{Burst, Event, TaskId};
use onbeat_sense::recording::{ReadError, Recording, read_from};

fn trace(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces")).join(name)
}

fn text_of(name: &str) -> String {
    let file = std::fs::File::open(trace(name)).unwrap();
    let mut gz = flate2::read::GzDecoder::new(file);
    std::io::read_to_string(&mut gz).unwrap()
}

/// Reads bytes as if they were a file called `made`.
fn read_bytes(bytes: impl AsRef<[u8]>) -> Result<Recording, ReadError> {
    read_from(bytes.as_ref(), "made")
}

/// With an error that begins so, and says these.
#[track_caller]
fn is_refused(bytes: impl AsRef<[u8]>, begin: &str, said: &[&str]) {
    let error = read_bytes(bytes).unwrap_err().to_string();
    assert!(error.starts_with(begin), "{error}");
    assert!(said.iter().all(|part| error.contains(part)), "{error}");
}

fn bursts(recording: &Recording) -> Vec<Burst> {
    (recording.events.iter())
        .filter_map(|event| match event {
            Event::Burst(burst) => Some(*burst),
            _ => None,
        })
        .collect()
}

fn task_of(recording: &Recording, comm: &str) -> TaskId {
    let mut tasks = recording.tasks.iter();
    tasks.find(|t| t.comm.to_text() == comm).unwrap().id
}

/// The bursts of all tasks that were last called `comm`.
fn bursts_of(recording: &Recording, comm: &str) -> Vec<Burst> {
    let ids: Vec<_> = (recording.tasks.iter())
        .filter(|task| task.comm.to_text() == comm)
        .map(|task| task.id)
        .collect();
    let mut bursts = bursts(recording);
    bursts.retain(|burst| ids.contains(&burst.task));
    bursts
}

/// The properties of every recording that could be read.
fn check(recording: &Recording) {
    assert!(recording.events.is_sorted_by_key(Event::at));
    assert!(recording.began <= recording.ended);
    for burst in bursts(recording) {
        assert!(burst.woke <= burst.first_ran, "{burst:?}");
        assert!(burst.first_ran <= burst.blocked, "{burst:?}");
    }
}
