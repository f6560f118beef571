//! Text of every form, one as often as another by the first byte: its beginning, then anything.
#![no_main]

const HEADS: [&[u8]; 6] = [
    b"",
    b"# tracer: nop\n",
    b"swapper 0 [000] 1.000000: sched:sched_stat_wait: \n",
    b"[10:00:00.000000000] (+?.?????????) a x: { cpu_id = 0 }, { }\n",
    b"<html>\n<script class=\"trace-data\">\n# tracer: nop\n",
    b"1000,1000,2000\n",
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&first, bytes)) = bytes.split_first() else {
        return;
    };
    let Some(head) = HEADS.get(usize::from(first) % (HEADS.len() + 1)) else {
        // The same as a string of JSON.
        let text = serde_json::json!({ "systemTraceEvents": String::from_utf8_lossy(bytes) });
        onbeat_fuzz::recording_is_answered(b"", text.to_string().as_bytes());
        return;
    };
    onbeat_fuzz::recording_is_answered(head, bytes);
});
