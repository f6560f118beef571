//! The static probes of an ELF file: whatever the bytes are, each probe is found at most once.
#![no_main]

use onbeat_sense::probes::{Probe, in_bytes};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let found = in_bytes(bytes);
    assert!(found.len() <= Probe::ALL.len());
    assert!(found.is_sorted());
});
