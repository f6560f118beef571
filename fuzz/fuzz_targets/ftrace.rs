//! ftrace's text.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    onbeat_fuzz::recording_is_answered(b"# tracer: nop\n", bytes);
});
