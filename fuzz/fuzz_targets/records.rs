//! The output of the tracer's programs, in records and in the map of wakeups: any bytes are an
//! event or none.
#![no_main]

use onbeat_model::{Event, Instant};
use onbeat_sense::bpf::{event_of_record, event_of_wakeups};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = event_of_record(bytes);
    let (key, value) = bytes.split_at(bytes.len().min(16));
    let woke = event_of_wakeups(key, value, Instant::ZERO);
    assert!(matches!(woke, None | Some(Event::Woke { .. })));
});
