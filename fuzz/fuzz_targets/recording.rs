//! onbeat's own recording: what is read from it, written and read again, is the same.
#![no_main]

use onbeat_sense::recording::{FORMAT, VERSION};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let facts = format!("{{\"format\":\"{FORMAT}\",\"version\":{VERSION}}}\n");
    let Some(recording) = onbeat_fuzz::recording_is_answered(facts.as_bytes(), bytes) else {
        return;
    };
    let mut written = String::new();
    for event in &recording.events {
        written += &serde_json::to_string(event).expect("an event is plain data");
        written.push('\n');
    }
    let again = onbeat_fuzz::recording_is_answered(facts.as_bytes(), written.as_bytes());
    assert_eq!(
        again.map(|recording| recording.events),
        Some(recording.events)
    );
});
