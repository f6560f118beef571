//! A request to the endpoint of metrics: any bytes ask for the page, for something else, or are not
//! whole; and only a GET of the page asks for it.
#![no_main]

use onbeat_metrics::asks_for_metrics;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if asks_for_metrics(bytes) == Some(true) {
        let is_get = |rest: &[u8]| rest.trim_ascii_start().starts_with(b"GET");
        assert!(is_get(bytes), "{}", bytes.escape_ascii());
    }
});
