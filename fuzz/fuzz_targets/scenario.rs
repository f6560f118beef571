//! `onbeat sim`'s input: a scenario in TOML, and demands in CSV.
#![no_main]

use std::path::Path;

use onbeat_sim::scenario::{self, parse_demands};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(error) = parse_demands(text) {
        // A line from 1, then what is wrong.
        let line = error.split(':').next().unwrap_or_default();
        assert!(line.parse::<usize>().is_ok_and(|line| line > 0), "{error}");
    }
    // Not a scenario that names files: it would read those of this machine.
    if text.contains("recorded") {
        return;
    }
    if let Err(error) = scenario::parse(text, Path::new("input")) {
        assert!(error.to_string().starts_with("input:"), "{error}");
    }
});
