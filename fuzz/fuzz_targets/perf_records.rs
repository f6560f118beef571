//! The records of a perf ring: whatever the bytes are, there are no more records than find room in
//! them.
#![no_main]

use onbeat_sense::perf::records;

/// The least that a record takes: its header and what all have in common.
const SHORTEST: usize = 40;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert!(records(bytes).len() <= bytes.len() / SHORTEST);
});
