//! An ELF file before it is executed: whatever the bytes are, each place of a static probe is found
//! once, in order, and no more of them than a program has; and the dynamic linker that it names, if
//! any, has an absolute path.
#![no_main]

use onbeat_sense::executable;
use onbeat_sense::probes::{MOST_SITES, in_bytes};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let found = in_bytes(bytes);
    assert!(found.len() <= MOST_SITES);
    assert!(found.is_sorted());
    assert!(executable::linker_in_bytes(bytes).is_none_or(|linker| linker.is_absolute()));
});
