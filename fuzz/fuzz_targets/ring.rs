//! The memory that programs share with onbeat, and may write to while it reads: whatever the words
//! are, a pass ends, and gives no more records than there is room for.
#![no_main]

use std::sync::atomic::{AtomicU64, Ordering};

use onbeat_sense::preload::Reader;

/// Room for eight records, and the header.
const WORDS: usize = 9 * 8;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let ring: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let mut reader = Reader::default();
    // Each nine bytes are where a word is written, and the word; then, sometimes, all is read.
    for step in bytes.chunks_exact(9) {
        let &[place, a, b, c, d, e, f, g, h] = step else {
            continue;
        };
        let word = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        ring[usize::from(place) % WORDS].store(word, Ordering::Relaxed);
        if place >= 128 {
            let mut records = Vec::new();
            reader.read(&ring, &mut records);
            assert!(records.len() <= 8);
        }
    }
});
