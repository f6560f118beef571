//! `/proc/PID/maps`, as the helper reads it, and the helper's answers, as the service reads them:
//! any bytes give as many mappings and probes as there is room for, at most.
#![no_main]

use onbeat_sense::bpf::listener::parser::{in_answer, in_maps};
use onbeat_sense::probes::MOST_SITES;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.split(|&byte| byte == b'\n').count();
    assert!(in_maps(bytes).len() <= lines);
    let (names, sites) = in_answer(bytes);
    // A mapping takes at least 48 bytes, and a site 48.
    assert!(names.is_none_or(|names| names.len() * 48 < bytes.len()));
    assert!(sites.is_none_or(|sites| sites.len() <= MOST_SITES && sites.len() * 48 < bytes.len()));
});
