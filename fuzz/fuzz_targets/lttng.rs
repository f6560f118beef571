//! The text of babeltrace2.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    onbeat_fuzz::recording_is_answered(
        b"[10:00:00.000000000] (+?.?????????) a x: { cpu_id = 0 }, { }\n",
        bytes,
    );
});
