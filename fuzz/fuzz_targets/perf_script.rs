//! The text of `perf script`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    onbeat_fuzz::recording_is_answered(
        b"swapper 0 [000] 1.000000: sched:sched_stat_wait: \n",
        bytes,
    );
});
