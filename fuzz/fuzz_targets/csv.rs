//! Comma-separated times; and, as nothing comes before them, any file at all, also compressed.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    onbeat_fuzz::recording_is_answered(b"", bytes);
    onbeat_fuzz::recording_is_answered(b"1000,1000,2000\n", bytes);
});
