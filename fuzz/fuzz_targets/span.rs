//! Lengths of time, as options on the command line give them.
#![no_main]

use onbeat_model::Span;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(span) = text.parse::<Span>() else {
        return;
    };
    // The text has four significant digits, or whole seconds: half a second more than the longest.
    if span > Span::MAX - Span::from_secs(1) {
        return;
    }
    let shown: Span = span.to_string().parse().expect("what is shown can be read");
    assert!(
        shown.abs_diff(span).ratio(span) <= 1e-3,
        "{text}: {span:?}, then {shown:?}"
    );
});
