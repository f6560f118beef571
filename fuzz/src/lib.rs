//! Common to the targets: whatever a recording holds, the answer is sound.

use onbeat_model::{Event, Flow, Sensor, Span};
use onbeat_sense::recording::{Recording, Replay, read_from};

/// Reads `head` and then `bytes` as one recording, checks the answer, and plays it back.
pub fn recording_is_answered(head: &[u8], bytes: &[u8]) -> Option<Recording> {
    let input = [head, bytes].concat();
    let recording = match read_from(&input[..], "input") {
        Ok(recording) => recording,
        Err(error) => {
            assert!(error.to_string().contains("input"), "{error}");
            return None;
        }
    };
    assert!(recording.events.is_sorted_by_key(Event::at));
    for event in &recording.events {
        if let Event::Burst(burst) = event {
            assert!(burst.woke <= burst.first_ran && burst.first_ran <= burst.blocked);
        }
    }
    let mut replay = Replay::new(recording.clone());
    replay.track_all();
    let mut events = Vec::new();
    while matches!(replay.poll(Span::MAX, &mut events), Ok(Flow::Open)) {}
    Some(recording)
}
