//! A page of systrace: in front of its trace, in it, and behind it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    onbeat_fuzz::recording_is_answered(b"<html>\n", bytes);
    onbeat_fuzz::recording_is_answered(
        b"<html>\n<script class=\"trace-data\">\n# tracer: nop\n",
        bytes,
    );
});
