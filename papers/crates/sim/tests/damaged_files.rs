//! Scenarios and lists of demands that somebody has mistyped: an answer with a line, and no panic.

use std::path::Path;

use onbeat_sim::scenario::{self, parse_demands};
use proptest::prelude::*;

const EXAMPLES: [&str; 5] = [
    include_str!("../../../examples/grace.toml"),
    include_str!("../../../examples/lfs-plus-plus.toml"),
    include_str!("../../../examples/onbeat.toml"),
    include_str!("../../../examples/overload.toml"),
    include_str!("../../../examples/player.toml"),
];

proptest! {
    #[test]
    fn a_mistyped_scenario_is_an_error_with_its_place(
        example in 0..EXAMPLES.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[ -~\n]{0,3}"), 1..6),
    ) {
        let mut text = EXAMPLES[example].to_owned();
        for (at, typed) in edits {
            let at = at.index(text.len());
            text.replace_range(at..=at, &typed);
        }
        // One that names files would read those of this machine.
        prop_assume!(!text.contains("recorded"));
        if let Err(error) = scenario::parse(&text, Path::new("input")) {
            prop_assert!(error.to_string().starts_with("input:"), "{error}");
        }
    }

    #[test]
    fn mistyped_demands_are_an_error_with_its_line(text in "(demand_ns|task,release_ns)?[0-9,\n -]{0,80}") {
        if let Err(error) = parse_demands(&text) {
            let line = error.split(':').next().unwrap_or_default();
            prop_assert!(line.parse::<usize>().is_ok_and(|line| line > 0), "{error}");
        }
    }
}
